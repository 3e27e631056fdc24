// Imports for tests: messages → rows as short texts, and whole imports into a fresh lake.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { SequenceTrust } from '../../server/feed/feed-reading.ts'
import { LineOrder } from '../../server/feed/line-order.ts'
import type { FoldCounts } from '../../server/fold/fold-order.ts'
import type { MarketDay } from '../../server/fold/fold-report.ts'
import { LineFiling } from '../../server/import/line-filing.ts'
import { importRecordings } from '../../server/import/recording-import.ts'
import type { ImportOptions, ImportResult } from '../../server/import/recording-import.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { readRows } from './lob-rows.ts'
import type { LobRow } from './lob-rows.ts'

const EVENT_NAMES = ['clear', 'set', 'add', 'gap']
const NS_PER_HOUR = 3_600_000_000_000n

/** A row with the series of its file. */
export interface FoldedRow extends LobRow {
  readonly series: string
}

export interface FoldHarness {
  /** Adds frames (objects) or lines (strings); a list is one message of several frames. */
  feed(...items: (object | string)[]): FoldHarness
  /** Adds a line that cannot be read. */
  feedBadLine(): FoldHarness
  /** Ends the file and starts another one. */
  nextFile(): FoldHarness
  /** Imports the files and returns the rows as texts, ordered by time. */
  done(): Promise<string[]>
  /** Available after `done`. */
  readonly rows: readonly FoldedRow[]
  readonly tally: FoldCounts
  readonly days: readonly MarketDay[]
  readonly covered: ReadonlyMap<string, bigint>
}

/** Reads a frame like an import does before writing it. Throws BadLineError. */
export function fileFrame(source: LobSource, frame: object): void {
  const filing = new LineFiling(
    { source },
    { messages: 0, badLines: 0, privateFrames: new Map(), otherFrames: new Map() },
  )
  filing.file(filing.parse(JSON.stringify(frame)), new LineOrder('a recording'))
}

/** Folds messages like an import does. */
export function foldHarness(
  source: LobSource,
  options: { series?: string; useYesPrice?: boolean; sequence?: SequenceTrust } = {},
): FoldHarness {
  const files: string[][] = [[]]
  let [rows, result]: [readonly FoldedRow[], ImportResult | undefined] = [[], undefined]
  const harness: FoldHarness = {
    feed(...items) {
      files.at(-1)!.push(...items.map((item) => (typeof item === 'string' ? item : JSON.stringify(item))))
      return harness
    },
    feedBadLine() {
      return harness.feed('{"type":')
    },
    nextFile() {
      files.push([])
      return harness
    },
    async done() {
      const directory = await mkdtemp(join(tmpdir(), 'bookcast-fold-'))
      try {
        const paths = files.map((_, index) => join(directory, `${index}.ndjson`))
        for (const [index, lines] of files.entries())
          await writeFile(paths[index]!, lines.map((line) => `${line}\n`).join(''))
        const lake = join(directory, 'lake')
        await mkdir(lake)
        result = await runImport(lake, source, { paths }, { skipBad: true, ...options })
        rows = await rowsOf(result, source, files.flat().join('\n'))
        return rows.map(textOf)
      } finally {
        await rm(directory, { recursive: true })
      }
    },
    get rows() {
      return rows
    },
    get tally() {
      return result!.tally
    },
    get days() {
      return result!.days
    },
    get covered() {
      return new Map(result!.files.map(({ series, coversTo }) => [series, coversTo]))
    },
  }
  return harness
}

/** By time; at equal times by the messages' numbers, else in the order in which `text` names the markets. */
async function rowsOf({ files }: ImportResult, source: LobSource, text: string): Promise<FoldedRow[]> {
  const rows: FoldedRow[] = []
  for (const { path, series } of files)
    for (const row of await readRows(path)) if (!isKeyframe(row)) rows.push({ ...row, series })
  const placeOf = (id: string): number => text.indexOf(id.slice(id.lastIndexOf(':') + 1))
  const orderOf = ({ seq, market_id: id, event }: FoldedRow): number =>
    source === 'kalshi' && event !== 3 ? Number(seq) : placeOf(id)
  return rows.toSorted((a, b) => {
    if (a.ts !== b.ts) return a.ts < b.ts ? -1 : 1
    return a.market_id === b.market_id ? 0 : orderOf(a) - orderOf(b)
  })
}

/** Rows that repeat the book at the start of an hour. */
function isKeyframe({ seq, ts, event }: LobRow): boolean {
  return seq === 0n && event !== 3 && ts % NS_PER_HOUR === 0n
}

/** `ms market event side price qty`, the time in ms, price in 1/10000 dollar, quantity in contracts. */
function textOf({ market_id: id, ts, event, side, price, qty }: LobRow): string {
  const level =
    event === 1 || event === 2 ? ` ${side === 0 ? 'bid' : 'ask'} ${price} ${Number(qty) / 1e6}` : ''
  return `${millisecondText(ts)} ${id} ${EVENT_NAMES[event]}${level}`
}

function millisecondText(ts: bigint): string {
  const fraction = String(ts % 1_000_000n)
    .padStart(6, '0')
    .replace(/0+$/, '')
  return fraction === '' ? String(ts / 1_000_000n) : `${ts / 1_000_000n}.${fraction}`
}

/** One import with the command line's options. `lines` are the content of stdin. */
export async function runImport(
  lake: string,
  source: LobSource,
  input: { readonly paths?: readonly string[]; readonly lines?: readonly string[] },
  options: Partial<ImportOptions> = {},
): Promise<ImportResult> {
  return await importRecordings({
    source,
    lake,
    paths: input.paths ?? [],
    stdin: Readable.from((input.lines ?? []).map((line) => Buffer.from(`${line}\n`))),
    skipBad: false,
    replace: false,
    useYesPrice: false,
    signal: new AbortController().signal,
    ...options,
  })
}
