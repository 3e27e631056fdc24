// Weather and market: the temperature that settles an event, and the distribution that its prices imply, over one climate day
// with one cursor.

import type { ApiRequest } from './api-request.ts'
import { DataTable } from './data-table.ts'
import { element, scroller, tableHead, tableRow } from './element.ts'
import { ImpliedPlot } from './implied-plot.ts'
import { LinePlot } from './line-plot.ts'
import { indexAt } from './market-lines.ts'
import { onNextFrame } from './next-frame.ts'
import { instantText, valueText } from './number-text.ts'
import { plotFrame } from './plot-frame.ts'
import { colourKey } from './scale-legend.ts'
import { eventDate, shortened } from './strikes.ts'
import { colour } from './theme.ts'
import { TimeView } from './time-view.ts'
import type { View, ViewContext } from './view.ts'
import { WeatherDay } from './weather-day.ts'
import { type WeatherPlan, weatherPlan } from './weather-requests.ts'

const SHORTEST_MS = 3_600_000
const IMPLIED_NOTE =
  'The mids of all strikes, divided by their sum, percent. Hatched: not every strike has a known book.'
const NO_CATALOGUE_NOTE =
  'The server has no catalogue of markets: it is not known whether the books are those of all strikes, so there is no distribution.'
const NO_EVENT_NOTE = 'A distribution is that of one event: choose one above where there is one.'

class WeatherView implements View {
  readonly #context: ViewContext
  readonly #plan: WeatherPlan
  readonly #weather: WeatherDay
  readonly #time: TimeView
  /** Null if no event is chosen or the server has no catalogue. */
  readonly #implied: ImpliedPlot | null
  readonly #plot: LinePlot
  readonly #table: DataTable
  readonly #reports = element('tbody')
  readonly #show = onNextFrame(() => this.#draw())
  #times: readonly number[] = []
  #areQuotesWhole = false

  constructor(context: ViewContext) {
    const { state, catalogue, host } = context
    this.#context = context
    const facts = catalogue.factsOf(state.series)
    this.#plan = weatherPlan(state, facts)
    this.#weather = new WeatherDay(this.#plan.day, facts.kind)
    const extremum = facts.kind === 'high' ? 'maximum' : 'minimum'
    const date = eventDate(state.event) ?? shortened(state.date, 40)
    const heading = `Temperature at ${facts.station ?? 'no known station'}, climate day ${date}`
    const note = `Degrees Fahrenheit, UTC. The line holds the running ${extremum} of the climate day, midnight to midnight in local standard time (${instantText(this.#plan.day.fromMs)} to ${instantText(this.#plan.day.toMs)}); dots are climate reports when they were issued.`
    const top = plotFrame(
      host,
      heading,
      facts.station === null ? 'No station is known for this series.' : note,
    )
    top.plot.classList.add('half')
    this.#time = new TimeView({
      context,
      bounds: this.#plan.bounds,
      shortestMs: SHORTEST_MS,
      onWindow: () => this.#onWindow(),
      onCursor: (ms) => this.#showCursor(ms),
    })
    const isHigh = facts.kind === 'high'
    this.#plot = new LinePlot({
      host: top.plot,
      lines: [
        { label: 'temperature', stroke: () => colour('muted') },
        {
          label: `running ${extremum}`,
          stroke: () => colour(isHigh ? 'fall' : 'accent'),
          widthPx: 2,
          isStepped: true,
        },
        { label: 'climate report', stroke: () => colour('ink'), isPoints: true },
      ],
      yLabel: '°F',
      yRange: (_, low, high) => [Math.floor((low ?? 60) - 2), Math.ceil((high ?? 80) + 2)],
      get: this.#time.get,
      listener: this.#time.listener,
    })
    this.#implied = this.#impliedPlot()
    this.#table = new DataTable('Temperature, °F')
    const legend = [
      ['temperature', 'muted'],
      [`running ${extremum}`, isHigh ? 'fall' : 'accent'],
      ['climate report', 'ink'],
    ] as const
    top.below.append(
      element('div', { class: 'legend' }, ...legend.map(([name, ink]) => colourKey(name, `var(--${ink})`))),
      this.#table.root,
    )
    top.side.append(this.#reportTable())
    if (this.#implied === null) top.below.prepend(this.#time.bar.root)
    void this.#load()
  }

  /** The lower plot, with the time bar of both plots. If there is no distribution, shows a note instead and returns null. */
  #impliedPlot(): ImpliedPlot | null {
    const { host, state, catalogue } = this.#context
    if (this.#plan.quotes === null || !catalogue.isNamed) {
      const note = this.#plan.quotes === null ? NO_EVENT_NOTE : NO_CATALOGUE_NOTE
      host.append(element('p', { class: 'missing' }, note))
      return null
    }
    const frame = plotFrame(host, `Implied distribution of ${shortened(state.event, 80)}`, IMPLIED_NOTE)
    frame.plot.classList.add('half')
    frame.below.append(this.#time.bar.root)
    return new ImpliedPlot(frame, this.#time, this.#context)
  }

  follow(state: ViewContext['state']): void {
    this.#time.follow(state)
  }

  close(): void {
    this.#plot.destroy()
    this.#implied?.destroy()
  }

  #onWindow(): void {
    this.#plot.showWindow()
    this.#implied?.showWindow()
  }

  async #load(): Promise<void> {
    const { observations, climate } = this.#plan
    const quotes = this.#implied === null ? null : this.#plan.quotes
    const requests = [observations, climate, quotes].filter((request) => request !== null)
    const loading = this.#context.panel.begin(requests)
    const read = async <Row>(
      request: ApiRequest<Row> | null,
      take: (rows: readonly Row[]) => void,
    ): Promise<boolean> => {
      if (request === null) return false
      return loading.read(request, (rows) => {
        take(rows)
        this.#show()
      })
    }
    const readQuotes = async (): Promise<void> => {
      this.#areQuotesWhole = await read(quotes, (rows) => this.#implied?.lines.add(rows))
    }
    await Promise.all([
      read(observations, (rows) => this.#weather.observations.push(...rows)),
      read(climate, (rows) => this.#weather.reports.push(...rows)),
      readQuotes(),
    ])
    this.#show()
  }

  #draw(): void {
    if (this.#context.signal.aborted) return
    const { times, columns } = this.#weather.columns()
    this.#times = times
    this.#plot.setData(times, columns)
    const extremum = this.#weather.kind === 'high' ? 'Maximum so far' : 'Minimum so far'
    this.#table.setRows(['Time (UTC)', 'Temperature', extremum, 'Climate report'], {
      count: times.length,
      cellsOf: (index) => [
        instantText(times[index] ?? 0),
        ...columns.map((column) => (column[index] === undefined ? '' : valueText(column[index]))),
      ],
    })
    this.#showReports()
    this.#implied?.draw(this.#areQuotesWhole)
    const quoted = this.#implied?.lines.times ?? []
    const ticks = quoted.length > 0 ? quoted : times
    this.#time.bar.setTicks({
      count: ticks.length,
      timeOf: (index) => ticks[index] ?? this.#plan.bounds.fromMs,
      indexAt: (ms) => indexAt(ticks, ms),
    })
    const { fromMs, toMs } = this.#plan.day
    this.#time.showCursor((fromMs + toMs) / 2)
  }

  #showCursor(ms: number): string {
    this.#plot.setCursor(ms)
    const index = indexAt(this.#times, ms)
    this.#table.setCurrent(this.#times.length === 0 ? null : index)
    return `${instantText(ms)}: ${this.#temperatureAt(index)}${this.#implied?.showCursor(ms) ?? ''}`
  }

  #temperatureAt(index: number): string {
    const observed = this.#weather.columns().columns
    const last = (column: number): string => {
      const value = observed[column]
        ?.slice(0, index + 1)
        .findLast((cell) => cell !== undefined && cell !== null)
      return value === undefined || value === null ? '–' : `${valueText(value)}°`
    }
    return `${last(0)}, ${this.#weather.kind === 'high' ? 'maximum' : 'minimum'} so far ${last(1)}; `
  }

  #reportTable(): HTMLElement {
    const table = element(
      'table',
      {},
      element('caption', {}, 'Climate reports'),
      tableHead(['Report', 'Issued', 'High', 'Low']),
      this.#reports,
    )
    return scroller('Climate reports', table)
  }

  #showReports(): void {
    this.#reports.replaceChildren(
      ...this.#weather.reports.map(
        ({ report_type: type, issued_at: issuedAt, high_temp_f: high, low_temp_f: low }) => {
          const issued = issuedAt === null ? '–' : `${instantText(Date.parse(issuedAt)).slice(5, 16)}Z`
          const cells = [issued, valueText(high), valueText(low)]
          return tableRow(type, cells)
        },
      ),
    )
  }
}

export function openWeatherView(context: ViewContext): View {
  return new WeatherView(context)
}
