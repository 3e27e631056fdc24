// /health and the metrics as tables for the user.

import type { Health } from '../clients/typescript/bookcast.ts'
import { bytesText, countText, durationText, instantText } from './number-text.ts'
import type { Sample } from './prometheus-text.ts'

export interface FactTable {
  readonly caption: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export function healthTable({
  status,
  embedded_db: embedded,
  hosted_db: hosted,
  sync,
  samples,
}: Health): FactTable {
  const rows = [
    ['Service', status],
    ['Analytical database', embedded],
    ['Relational database', hosted],
    ['Lake looked at', sync.last_sync === null ? 'never' : instantText(Date.parse(sync.last_sync))],
    ['Lake is stale', sync.is_stale ? 'yes' : 'no'],
    ['Parquet files', countText(sync.file_count)],
  ]
  const hasSamples =
    (samples as Health['samples'] | undefined) !== undefined && (samples.files > 0 || samples.records)
  return {
    caption: 'Stores and sync',
    columns: ['What', 'State'],
    rows: hasSamples
      ? [
          ...rows,
          [
            'Samples',
            `${countText(samples.files)} invented files${samples.records ? ', invented records' : ''}`,
          ],
        ]
      : rows,
  }
}

/** A short note that data is generated sample data; empty if none is. */
export function sampleText({ sync, samples }: Health): string {
  const given = samples as Health['samples'] | undefined
  if (given === undefined || (given.files === 0 && !given.records)) return ''
  const isAll = given.files === sync.file_count && (given.records || given.files > 0)
  return isAll ? 'Invented sample data' : 'Some of the data is an invented sample'
}

type Find = (name: string, labels?: Readonly<Record<string, string>>) => number | undefined

function finder(samples: readonly Sample[]): Find {
  return (name, wanted = {}) =>
    samples.find(
      (sample) =>
        sample.name === `bookcast_${name}` &&
        Object.entries(wanted).every(([label, value]) => sample.labels[label] === value),
    )?.value
}

function labelValues(samples: readonly Sample[], name: string, label: string): string[] {
  const values = samples
    .filter((sample) => sample.name === `bookcast_${name}`)
    .map(({ labels }) => labels[label])
  return [...new Set(values)].filter((value) => value !== undefined)
}

function count(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '–' : countText(value)
}

function since(timestampS: number | undefined, nowMs: number): string {
  if (timestampS === undefined || Number.isNaN(timestampS) || timestampS === 0) return 'never'
  return `${durationText(Math.max(0, nowMs / 1000 - timestampS))} ago (${instantText(1000 * timestampS)})`
}

function slotTable(samples: readonly Sample[], find: Find): FactTable {
  const lanes = labelValues(samples, 'lane_granted_total', 'lane').map((lane) => {
    const refused = samples
      .filter(({ name, labels }) => name === 'bookcast_lane_refused_total' && labels['lane'] === lane)
      .reduce((sum, { value }) => sum + value, 0)
    return [
      lane,
      ...['running', 'waiting', 'granted_total'].map((what) => count(find(`lane_${what}`, { lane }))),
      count(refused),
    ]
  })
  const caption = `Slots: ${count(find('lob_slots_taken'))} of ${count(find('lob_slots_max'))} order-book slots taken`
  return { caption, columns: ['Lane', 'Running', 'Waiting', 'Granted', 'Refused'], rows: lanes }
}

function lagTable(samples: readonly Sample[], find: Find, nowMs: number): FactTable {
  const books = labelValues(samples, 'books_covered_timestamp_seconds', 'source').map((source) => [
    `order books, ${source}`,
    since(find('books_covered_timestamp_seconds', { source }), nowMs),
  ])
  const rows = samples
    .filter(({ name }) => name === 'bookcast_newest_row_timestamp_seconds')
    .map(({ labels, value }) => [`${labels['dataset']}, ${labels['source']}`, since(value, nowMs)])
  return {
    caption: 'Lag: how new the newest rows are',
    columns: ['What', 'Newest'],
    rows: [...books, ...rows],
  }
}

function collectorTable(samples: readonly Sample[], find: Find, nowMs: number): FactTable {
  const tasks = labelValues(samples, 'collect_runs_total', 'task').map((task) => [
    task,
    ...['runs_total', 'rows_total', 'errors_total'].map((what) => count(find(`collect_${what}`, { task }))),
    since(find('collect_last_success_timestamp_seconds', { task }), nowMs),
  ])
  return { caption: 'Collectors', columns: ['Task', 'Runs', 'Rows', 'Errors', 'Last success'], rows: tasks }
}

function recorderTable(samples: readonly Sample[], find: Find): FactTable {
  const rows = labelValues(samples, 'recorder_up', 'exchange').map((exchange) => [
    exchange,
    find('recorder_up', { exchange }) === 1 ? 'recording' : 'down',
    ...['connections', 'markets', 'messages_total', 'gaps_total'].map((what) =>
      count(find(`recorder_${what}`, { exchange })),
    ),
  ])
  return {
    caption: 'Recorders',
    columns: ['Exchange', 'State', 'Connections', 'Markets', 'Messages', 'Gaps'],
    rows,
  }
}

function diskTable(samples: readonly Sample[], find: Find): FactTable {
  const rows = labelValues(samples, 'disk_size_bytes', 'place').map((place) => [
    place,
    bytesText(find('disk_free_bytes', { place }) ?? 0),
    bytesText(find('disk_size_bytes', { place }) ?? 0),
  ])
  return { caption: 'Disks', columns: ['Place', 'Free', 'Size'], rows }
}

/** Tables of slots, lag, collectors, recorders and disks; those without any metrics are left out. */
export function metricTables(samples: readonly Sample[], nowMs: number): FactTable[] {
  const find = finder(samples)
  const tables = [
    slotTable(samples, find),
    lagTable(samples, find, nowMs),
    collectorTable(samples, find, nowMs),
    recorderTable(samples, find),
    diskTable(samples, find),
  ]
  return tables.filter(({ rows }) => rows.length > 0)
}
