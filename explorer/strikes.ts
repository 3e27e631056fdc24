// Orders the strikes of an event by temperature. A ticker ends in `B80.5` for 80 to 81 degrees, and in `T79` for an open end,
// below the lowest bracket or above the highest. Other markets have a name, whose question contains `80-81°F`, `79°F or
// below` or `94°F or higher`.

export interface Strike {
  readonly market: string
  /** Text such as `80–81°`, with the date and the outcome if the market's name has them; or else the end of the id. */
  readonly label: string
  /** Whether the label comes from the market's name and can be shown without the id. */
  readonly isNamed: boolean
}

/** The exchange's name of a market: the question, and the outcome that pays. */
export interface MarketName {
  readonly question: string
  readonly outcome: string
}

export type MarketNames = ReadonlyMap<string, MarketName>

export function namesOf(
  markets: readonly { readonly market: string; readonly name: MarketName | null }[],
): MarketNames {
  return new Map(markets.flatMap(({ market, name }) => (name === null ? [] : [[market, name]])))
}

const STRIKE = /-([BT])(-?\d+(?:\.\d+)?)$/
const LABEL_CHARACTERS_MAX = 24
/** A token of about 77 digits. Its first and last digits are enough to distinguish it. */
const TOKEN = /^(\d{6})\d{50,}(\d{4})$/

/** The text, cut to `charactersMax` characters with an ellipsis at its end. */
export function shortened(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax - 1)}…`
}

const MONTHS = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ')
const RANGE = /(-?\d+)(?:-(-?\d+))?°[FC]?( or (?:below|lower|less))?( or (?:above|higher|more))?/
const DAY = /\bon ([A-Z][a-z]{2})[a-z]* (\d{1,2})\b/

interface Parsed extends Strike {
  readonly order: number
}

function parsedName(market: string, { question, outcome }: MarketName): Parsed {
  const [range, low = '', high, below, above] = RANGE.exec(question) ?? []
  const sign = below === undefined ? (above === undefined ? '' : '≥ ') : '≤ '
  const degrees = `${sign}${low}${high === undefined ? '' : `–${high}`}°`
  const [, month, day] = DAY.exec(question) ?? []
  const date = month === undefined ? '' : ` ${month} ${day}`
  const words = range === undefined ? question : degrees + date
  // Order by day, then from cold to hot, then the outcome "Yes" first.
  const dayOrder = month === undefined ? 0 : 1_000 * (31 * MONTHS.indexOf(month.toUpperCase()) + Number(day))
  const degreeOrder = Number(low) + (below ? -0.5 : above ? 0.5 : 0) + (outcome === 'Yes' ? 0 : 0.25)
  return {
    market,
    label: shortened(outcome === 'Yes' ? words : `${words} ${outcome}`, LABEL_CHARACTERS_MAX),
    isNamed: true,
    order: range === undefined ? Number.POSITIVE_INFINITY : dayOrder + degreeOrder,
  }
}

function parsed(market: string, lowestBracket: number, names: MarketNames): Parsed {
  const marketName = names.get(market)
  if (marketName !== undefined) return parsedName(market, marketName)
  const [, kind, number] = STRIKE.exec(market) ?? []
  if (number === undefined) {
    const name = market.slice(Math.max(market.lastIndexOf('-'), market.lastIndexOf(':')) + 1)
    const label = shortened((name || market).replace(TOKEN, '$1…$2'), LABEL_CHARACTERS_MAX)
    return { market, label, isNamed: false, order: Number.POSITIVE_INFINITY }
  }
  const value = Number(number)
  const isNamed = false
  if (kind === 'B')
    return { market, label: `${Math.floor(value)}–${Math.ceil(value)}°`, isNamed, order: value }
  const isBelow = value <= lowestBracket
  const order = isBelow ? value - 0.5 : value + 0.5
  return { market, label: `${isBelow ? '<' : '>'} ${value}°`, isNamed, order }
}

/** Markets from cold to hot; those without a strike come last, by id. */
export function orderedStrikes(markets: readonly string[], names: MarketNames = new Map()): Strike[] {
  const brackets = markets.map((market) => STRIKE.exec(market)).filter((match) => match?.[1] === 'B')
  const lowest = Math.min(...brackets.map((match) => Number(match?.[2])))
  return markets
    .map((market) => parsed(market, lowest, names))
    .toSorted((one, other) =>
      one.order === other.order ? (one.market < other.market ? -1 : 1) : one.order - other.order,
    )
    .map(({ market, label, isNamed }) => ({ market, label, isNamed }))
}

/** The climate date of an event such as `KXHIGHNY-26JUL02`; undefined if the ticker has none. */
export function eventDate(event: string): string | undefined {
  const [, year, month = '', day] = /-(\d{2})([A-Z]{3})(\d{2})$/.exec(event) ?? []
  const number = MONTHS.indexOf(month) + 1
  return number === 0 ? undefined : `20${year}-${String(number).padStart(2, '0')}-${day}`
}
