// Scratch: folds recordings in memory.
import { mkdirSync, renameSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { rawDateDirectory } from '../../../shared/lake-layout.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'
import { readKalshiFrame } from '../../../server/exchanges/kalshi/messages.ts'
import { readPolymarketFrame } from '../../../server/exchanges/polymarket/messages.ts'
import { FoldTally } from '../../../server/fold/fold-tally.ts'
import { writeFoldState } from '../../../server/fold/fold-state.ts'
import { lineKey } from '../../../server/fold/piece.ts'
import type { Line, Piece } from '../../../server/fold/piece.ts'
import { SourceFold } from '../../../server/fold/source-fold.ts'
import { parseRecordedLine } from '../../../server/import/recorded-message.ts'

interface Held { readonly hour: number; readonly piece: Piece }
const lakes = new Map<string, Held[]>()
const HOUR = 3_600_000_000_000n

export async function importLake(source: LobSource, lake: string, paths: readonly string[], lastDate: string): Promise<void> {
  const held = lakes.get(lake) ?? []
  lakes.set(lake, held)
  const touched = new Set<string>()
  for (const path of paths) {
    const bytes = await readFile(path)
    const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
    for (const one of piecesOf(source, path, text)) { held.push(one); touched.add(dateOf(one.hour)) }
  }
  const raw = {
    has: (date: string) => held.some(({ hour }) => dateOf(hour) === date),
    async *hoursOf(date: string) {
      const own = held.filter(({ hour }) => dateOf(hour) === date)
      for (const hour of [...new Set(own.map((one) => one.hour))].sort((a, b) => a - b))
        yield own.filter((one) => one.hour === hour).map(({ piece }) => piece).toSorted((a, b) => a.lines[0]!.key - b.lines[0]!.key || a.lines.length - b.lines.length)
    },
    seriesOf: () => undefined,
  }
  const fold = new SourceFold({ lake, source, isNumbered: source === 'kalshi', hasNoLeg: source === 'kalshi', raw, tally: new FoldTally(), signal: new AbortController().signal })
  for (const { date, files, state } of await fold.fold([...touched])) {
    if (date > lastDate) throw new Error(`writes a file of ${date}`)
    for (const { writer } of files) { mkdirSync(dirname(writer.path), { recursive: true }); renameSync(writer.temporaryPath, writer.path) }
    const directory = rawDateDirectory(lake, source, date)
    mkdirSync(directory, { recursive: true })
    await writeFoldState(directory, state)
  }
}
function dateOf(hour: number): string { return new Date(hour * 3_600_000).toISOString().slice(0, 10) }

function piecesOf(source: LobSource, name: string, text: string): Held[] {
  const read = source === 'kalshi' ? readKalshiFrame : readPolymarketFrame
  const lines = text.split('\n').filter((line) => line !== '').map((line): Line => {
    const { recvTs, frames, isList } = parseRecordedLine(line)
    return { key: lineKey(recvTs, JSON.stringify(frames)), recvTs, messages: frames.map(read), isList }
  })
  const timeOf = ({ messages }: Line): bigint | undefined => { const m = messages[0]; return m === undefined || m.body.kind === 'book' && source === 'polymarket' ? undefined : m.ts }
  const hours = lines.map((line) => { const t = timeOf(line); return t === undefined ? undefined : Number(t / HOUR) })
  const firstTimed = hours.find((hour) => hour !== undefined)
  let current = firstTimed ?? Number(lines[0]!.recvTs! / HOUR)
  const result: { hour: number; lines: Line[] }[] = []
  let open: { hour: number; lines: Line[] } | undefined
  for (const [i, line] of lines.entries()) {
    const hour = hours[i]
    const rest = hours.slice(i + 1).filter((h) => h !== undefined)
    if (hour !== undefined && hour > current && (rest.length === 0 ? true : rest[0]! >= hour || rest[1]! >= hour)) current = hour
    else if (hour === undefined && line.recvTs !== undefined) {
      const nearest = lines.slice(i + 1).find((l) => timeOf(l) !== undefined) ?? lines.slice(0, i).findLast((l) => timeOf(l) !== undefined)
      const lag = nearest === undefined || nearest.recvTs === undefined ? 0n : nearest.recvTs - timeOf(nearest)!
      const own = Number((line.recvTs - (lag < 0n || lag > 2_000_000_000n ? lag : 0n)) / HOUR)
      const nextHour = rest[0]
      if (i === 0 || (own > current && (nextHour === undefined || nextHour >= own))) current = own
    }
    if (open === undefined || open.hour !== current) { const last = open?.lines.at(-1); open = { hour: current, lines: last === undefined ? [] : [last] }; result.push(open) }
    open.lines.push(line)
  }
  return result.map(({ hour, lines }, index) => ({ hour, piece: { name, lines: lines.map((l, i) => (index > 0 && i === 0 ? { ...l, isOverlap: true } : l)), sequence: 'strict', useYesPrice: false } }))
}
