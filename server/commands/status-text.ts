// The output of `bookcast status`: tables of sources, recorders, newest rows and storage.

import type { StorageFigures } from '../health/storage-watch.ts'
import type { RecorderStatus } from '../recorder/recorder-status.ts'
import type { SourceStatus } from '../ingest/source-status.ts'
import type { NewestRow } from '../storage/newest-rows.ts'

/** A recorder whose status is older than this does not count as running, whatever its last status says. */
const SILENT_MS = 30_000
const SOURCE_HEADINGS = ['source', 'parts', 'rows', 'last success', 'lag', 'gaps', 'failing'] as const
const RECORDER_HEADINGS = [
  'recorder',
  'state',
  'listed',
  'followed',
  'refused',
  'unplaced',
  'connections',
  'messages',
  'last message',
  'waiting for disk',
] as const

export function sourceTable(sources: readonly SourceStatus[]): string {
  const failures = sources
    .filter(({ lastFailure }) => lastFailure !== null)
    .map(({ source, lastFailure }) => `${source}: ${lastFailure}`)
  return lines([...table([SOURCE_HEADINGS, ...sources.map(sourceCells)]), ...failures])
}

export function recorderTable(recorders: readonly RecorderStatus[], nowMs: number): string {
  if (recorders.length === 0) return ''
  return lines(['', ...table([RECORDER_HEADINGS, ...recorders.map((each) => recorderCells(each, nowMs))])])
}

/** The newest observation of each station, and the newest row of each source. */
export function newestLines(newest: readonly NewestRow[], nowMs: number): string {
  if (newest.length === 0) return ''
  const rows = newest.map(({ kind, name, atS }) => [
    kind === 'station' ? `station ${name}` : `${kind} of ${name}`,
    instant(atS * 1000),
    duration(nowMs - atS * 1000),
  ])
  return lines(['', ...table([['newest', 'at', 'age'], ...rows])])
}

export function storageLines({ disks, lakeBytes, walBytes }: StorageFigures): string {
  const rows = disks.map(({ place, freeBytes, sizeBytes, isLow }) => [
    `disk of ${place}`,
    `${size(freeBytes)} free of ${size(sizeBytes)}${isLow ? ', nearly full' : ''}`,
  ])
  if (lakeBytes !== null) rows.push(['lake', size(lakeBytes)])
  for (const [exchange, bytes] of Object.entries(walBytes)) rows.push([`log of ${exchange}`, size(bytes)])
  return rows.length === 0 ? '' : lines(['', ...table(rows)])
}

function recorderCells(status: RecorderStatus, nowMs: number): readonly string[] {
  const { source, lanes, markets, unplacedMarkets, frames, lastFrameMs, queuedBytes } = status
  const sum = (valueOf: (lane: (typeof lanes)[number]) => number): string =>
    String(lanes.reduce((total, lane) => total + valueOf(lane), 0))
  return [
    source,
    stateOf(status, nowMs),
    String(markets),
    sum(({ subscribed }) => subscribed),
    sum(({ refused }) => refused),
    String(unplacedMarkets),
    sum(({ isConnected }) => Number(isConnected)),
    String(frames),
    lastFrameMs === null ? 'never' : `${duration(nowMs - lastFrameMs)} ago`,
    size(queuedBytes),
  ]
}

function stateOf({ isRunning, atMs, pid, host }: RecorderStatus, nowMs: number): string {
  if (!isRunning) return `stopped ${instant(atMs)}`
  return nowMs - atMs > SILENT_MS ? `silent since ${instant(atMs)}` : `runs as process ${pid} on ${host}`
}

function sourceCells(status: SourceStatus): readonly string[] {
  const { lastSuccessAtMs, lagMs } = status
  return [
    status.source,
    String(status.scopeCount),
    String(status.rowCount),
    lastSuccessAtMs === null ? 'never' : instant(lastSuccessAtMs),
    lagMs === null ? '-' : duration(lagMs),
    String(status.gapCount),
    String(status.failingCount),
  ]
}

function table(rows: readonly (readonly string[])[]): string[] {
  const columns = rows[0] ?? []
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

function lines(texts: readonly string[]): string {
  return `${texts.join('\n')}\n`
}

function instant(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** A duration in its two largest units, such as `3 h 5 min`. */
export function duration(ms: number): string {
  const seconds = Math.max(Math.round(ms / 1000), 0)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = Math.min(bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10), units.length - 1)
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`
}
