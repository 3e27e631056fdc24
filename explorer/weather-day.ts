// The weather of one climate day as columns: temperatures, the extremum so far, and the reports at their time of issue.

import type { ClimateRecord, Observation } from '../clients/typescript/bookcast.ts'
import type { ClimateDay } from '../shared/climate-day.ts'
import { alignedColumns, type Cell } from './aligned-columns.ts'
import { type ExtremumKind, runningExtremum } from './running-extremum.ts'

export class WeatherDay {
  readonly day: ClimateDay
  readonly kind: ExtremumKind
  readonly observations: Observation[] = []
  readonly reports: ClimateRecord[] = []

  constructor(day: ClimateDay, kind: ExtremumKind) {
    this.day = day
    this.kind = kind
  }

  /** Temperature, extremum so far and reports over one axis of times. */
  columns(): { readonly times: number[]; readonly columns: Cell[][] } {
    const temperatures = this.observations
      .map(({ observed_at: observedAt, temp_f: tempF }) => ({ ms: Date.parse(observedAt), tempF }))
      .toSorted((one, other) => one.ms - other.ms)
    const times = temperatures.map(({ ms }) => ms)
    const issued = this.reports
      .filter((report) => report.issued_at !== null)
      .map((report) => ({ ms: Date.parse(report.issued_at ?? ''), report }))
      .toSorted((one, other) => one.ms - other.ms)
    return alignedColumns([
      { times, values: temperatures.map(({ tempF }) => tempF) },
      { times, values: runningExtremum(temperatures, this.day, this.kind) },
      {
        times: issued.map(({ ms }) => ms),
        values: issued.map(({ report }) => (this.kind === 'high' ? report.high_temp_f : report.low_temp_f)),
      },
    ])
  }
}
