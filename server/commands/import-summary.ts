// What an import reports at its end: the files, and everything of the recording that is not in them.

import { relative } from 'node:path'
import type { WrittenLobFile } from '../lake/lob-recording-writer.ts'
import type { ImportResult } from '../import/recording-import.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'

/** The report as text, one fact per line. `elapsedMs` is the time of the whole import. */
export function importSummary(result: ImportResult, lake: string, elapsedMs: number): string {
  const { tally, files } = result
  const seconds = elapsedMs / 1000
  const rate = Math.round(tally.messages / Math.max(seconds, 0.001))
  const lines = [
    ...files.map((file) => fileLine(file, lake)),
    `${count(tally.messages, 'message')}, ${count(tally.events, 'book event')} in ${seconds.toFixed(1)} s ` +
      `(${count(rate, 'message')}/s)`,
    ...[...tally.gaps].toSorted(byName).map(([reason, gaps]) => `${count(gaps, 'gap')}: ${reason}`),
    ...[...tally.skippedTypes]
      .toSorted(byName)
      .map(([type, n]) => `${count(n, 'message')} without book event: ${type}`),
    ...remark(tally.duplicates, 'message', 'dropped as repeated'),
    ...remark(tally.negativeLevels, 'delta', 'below zero: the book is unknown until its next snapshot'),
    ...remark(tally.bestPriceMismatches, 'message', 'with best prices other than the rebuilt book’s'),
    ...raisedLine(result),
    ...badLines(result),
  ]
  return `${lines.join('\n')}\n`
}

function fileLine(file: WrittenLobFile, lake: string): string {
  return (
    `${file.status} ${relative(lake, file.path)}: ${count(file.rows, 'row')}, ` +
    `${count(file.markets, 'market')}, ${count(file.gaps, 'gap')}, ${timeText(file.coversFrom)} to ${timeText(file.coversTo)}`
  )
}

function raisedLine({ raisedTimes: { events, nsMax } }: ImportResult): string[] {
  if (events === 0) return []
  const byMs = Number(nsMax / NS_PER_MS)
  const raised = count(events, 'event')
  return [
    `${raised} stamped with the time of the market's event before, at most ${byMs} ms later than its own`,
  ]
}

function badLines(result: ImportResult): string[] {
  return result.badLines.flatMap(({ input, count: skipped, first }) => [
    `${count(skipped, 'bad line')} of ${input} skipped, the first of them:`,
    ...first.map((text) => `  ${text}`),
  ])
}

function remark(n: number, noun: string, text: string): string[] {
  return n === 0 ? [] : [`${count(n, noun)} ${text}`]
}

function timeText(ns: bigint): string {
  return new Date(Number(ns / NS_PER_MS)).toISOString()
}

function count(n: number, noun: string): string {
  return `${n.toLocaleString('en-US')} ${noun}${n === 1 ? '' : 's'}`
}

function byName([a]: readonly [string, number], [b]: readonly [string, number]): number {
  return a < b ? -1 : 1
}
