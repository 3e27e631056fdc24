// The state of the service: stores, sync, slots, collectors, lag, and the gaps in what was recorded.

import { ApiError, type ClimateGap } from '../clients/typescript/bookcast.ts'
import { addDays, utcDateOf } from '../shared/utc-date.ts'
import { answerOf, type ApiRequest } from './api-request.ts'
import { button, element, scroller, tableHead, tableRow } from './element.ts'
import { instantText } from './number-text.ts'
import { parseSamples } from './prometheus-text.ts'
import { daysBetween, type RecordedSeries } from './recorded-days.ts'
import { type FactTable, healthTable, metricTables } from './service-facts.ts'
import { shortened } from './strikes.ts'
import type { View, ViewContext } from './view.ts'

const CLIMATE_GAP_DAYS = 365
const SERIES_NAME_CHARACTERS_MAX = 60

function tableOf({ caption, columns, rows }: FactTable): HTMLElement {
  const body = rows.map(([heading = '', ...cells]) => tableRow(heading, cells))
  const table = element(
    'table',
    {},
    element('caption', {}, caption),
    tableHead(columns),
    element('tbody', {}, ...body),
  )
  return scroller(caption, table)
}

function recordingTable(recorded: readonly RecordedSeries[]): FactTable {
  return {
    caption: 'Recorded order books',
    columns: ['Series', 'Source', 'From', 'To', 'Dates missing between'],
    rows: recorded.map(({ source, series, spans }) => [
      shortened(series, SERIES_NAME_CHARACTERS_MAX),
      source,
      spans[0]?.[0] ?? '–',
      spans.at(-1)?.[1] ?? '–',
      daysBetween(spans)
        .map(([first, last]) => (first === last ? first : `${first} to ${last}`))
        .join(', ') || 'none',
    ]),
  }
}

function climateGapTable(station: string, gaps: readonly ClimateGap[]): FactTable {
  return {
    caption: `Dates without a climate report at ${station} in the year before the last recording`,
    columns: ['From', 'To', 'Days'],
    rows:
      gaps.length === 0
        ? [['none', '–', '0']]
        : gaps.map((gap) => [gap.gap_start, gap.gap_end, String(gap.missing_days)]),
  }
}

class DataView implements View {
  readonly #context: ViewContext
  readonly #tables = element('div', { class: 'fact-tables' })

  constructor(context: ViewContext) {
    this.#context = context
    const refresh = button('Ask again', () => void this.#load())
    context.host.append(
      element('h2', {}, 'State of the service'),
      element(
        'p',
        { class: 'note' },
        'From ',
        element('a', { href: 'health' }, '/health'),
        ', ',
        element('a', { href: 'metrics' }, '/metrics'),
        ' and the lake. ',
        refresh,
      ),
      this.#tables,
    )
    void this.#load()
  }

  follow(): void {}

  close(): void {}

  async #load(): Promise<void> {
    const { panel, catalogue, signal } = this.#context
    const gaps = this.#gapsRequest()
    const health: ApiRequest = { title: 'health', method: 'health', parameters: {} }
    panel.begin(gaps === null ? [health] : [health, gaps])
    const parts = await Promise.allSettled([this.#health(), this.#metrics(), this.#climateGaps()])
    if (signal.aborted) return
    const tables: FactTable[] = []
    for (const part of parts)
      if (part.status === 'fulfilled') tables.push(...part.value)
      else panel.showError(part.reason)
    tables.push(recordingTable(catalogue.recorded))
    this.#tables.replaceChildren(...tables.map(tableOf))
    panel.report(`Asked at ${instantText(Date.now())}`)
  }

  async #health(): Promise<FactTable[]> {
    return [healthTable(await this.#context.session.impatientClient.health({ signal: this.#context.signal }))]
  }

  async #metrics(): Promise<FactTable[]> {
    const { session, signal } = this.#context
    try {
      return metricTables(parseSamples(await session.impatientClient.metrics({ signal })), Date.now())
    } catch (error) {
      // The metrics may be switched off, or be served on another port.
      if (error instanceof ApiError && error.code === 'unknown_path') return []
      throw error
    }
  }

  #gapsRequest(): ApiRequest | null {
    const { catalogue, state } = this.#context
    const { station } = catalogue.factsOf(state.series)
    if (station === null) return null
    const to = catalogue.spansOf(state.source, state.series).at(-1)?.[1] ?? utcDateOf(Date.now())
    const parameters = { station, from: addDays(to, 1 - CLIMATE_GAP_DAYS), to }
    return { title: 'climate gaps', method: 'climateGaps', parameters }
  }

  async #climateGaps(): Promise<FactTable[]> {
    const { session, signal } = this.#context
    const request = this.#gapsRequest()
    if (request === null) return []
    try {
      const gaps = await answerOf(session.impatientClient, request, { signal }).toArray()
      return [climateGapTable(String(request.parameters['station']), gaps as ClimateGap[])]
    } catch (error) {
      // A server without a store has no climate reports.
      if (error instanceof ApiError && error.code === 'unknown_path') return []
      throw error
    }
  }
}

export function openDataView(context: ViewContext): View {
  return new DataView(context)
}
