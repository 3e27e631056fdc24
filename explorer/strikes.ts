// The strikes of an event in the order of their temperatures. A ticker ends in `B80.5` for 80 to 81 degrees and in `T79`
// for both open ends: below the lowest bracket, above the highest.

export interface Strike {
  readonly market: string
  /** Such as `80–81°`; the end of the ticker where it says no temperature. */
  readonly label: string
}

const STRIKE = /-([BT])(-?\d+(?:\.\d+)?)$/
const LABEL_CHARACTERS_MAX = 24
/** A token of Polymarket: some 77 digits, which are told apart by their ends. */
const TOKEN = /^(\d{6})\d{50,}(\d{4})$/

/** Text that is cut where it gets too long for its place. */
export function shortened(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax - 1)}…`
}

interface Parsed extends Strike {
  readonly order: number
}

function parsed(market: string, lowestBracket: number): Parsed {
  const [, kind, number] = STRIKE.exec(market) ?? []
  if (number === undefined) {
    const name = market.slice(Math.max(market.lastIndexOf('-'), market.lastIndexOf(':')) + 1)
    const label = shortened((name || market).replace(TOKEN, '$1…$2'), LABEL_CHARACTERS_MAX)
    return { market, label, order: Number.POSITIVE_INFINITY }
  }
  const value = Number(number)
  if (kind === 'B') return { market, label: `${Math.floor(value)}–${Math.ceil(value)}°`, order: value }
  const isBelow = value <= lowestBracket
  return { market, label: `${isBelow ? '<' : '>'} ${value}°`, order: isBelow ? value - 0.5 : value + 0.5 }
}

/** Markets from cold to hot; those that name no strike come last, by name. */
export function orderedStrikes(markets: readonly string[]): Strike[] {
  const brackets = markets.map((market) => STRIKE.exec(market)).filter((match) => match?.[1] === 'B')
  const lowest = Math.min(...brackets.map((match) => Number(match?.[2])))
  return markets
    .map((market) => parsed(market, lowest))
    .toSorted((one, other) =>
      one.order === other.order ? (one.market < other.market ? -1 : 1) : one.order - other.order,
    )
    .map(({ market, label }) => ({ market, label }))
}

const MONTHS = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ')

/** The climate date of an event such as `KXHIGHNY-26JUL02`; undefined where the ticker says none. */
export function eventDate(event: string): string | undefined {
  const [, year, month = '', day] = /-(\d{2})([A-Z]{3})(\d{2})$/.exec(event) ?? []
  const number = MONTHS.indexOf(month) + 1
  return number === 0 ? undefined : `20${year}-${String(number).padStart(2, '0')}-${day}`
}
