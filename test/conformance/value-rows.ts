// The interface's tables of values: units (2.2), report types (2.3) and states (3).

export interface UnitRow {
  readonly contract: string
  readonly field: string
  /** The value under each `units` of one observation whose raw values are 50 °F, 10 kt, 30 inHg, 10 mi, 0.5 in, 3 in. */
  readonly values: Readonly<Record<'raw' | 'metric' | 'imperial', number>>
}

export const UNIT_ROWS: readonly UnitRow[] = [
  {
    contract: '| Temperature | degrees F | degrees C | degrees F |',
    field: 'temp_f',
    values: { raw: 50, metric: 10, imperial: 50 },
  },
  {
    contract: '| Wind speed | knots | m/s | mph |',
    field: 'wind_speed_kt',
    // 1 kt is 1852 m an hour, 1 mile is 1609.344 m.
    values: { raw: 10, metric: 5.144, imperial: 11.508 },
  },
  {
    contract: '| Pressure (altimeter) | inHg | hPa | inHg |',
    field: 'altimeter_inhg',
    // 1 inHg is 33.8639 hPa.
    values: { raw: 30, metric: 1015.917, imperial: 30 },
  },
  {
    contract: '| Visibility | miles | km | miles |',
    field: 'visibility_miles',
    values: { raw: 10, metric: 16.093, imperial: 10 },
  },
  {
    contract: '| Precipitation | inches | mm | inches |',
    field: 'precip_1hr_inches',
    values: { raw: 0.5, metric: 12.7, imperial: 0.5 },
  },
  {
    contract: '| Snow depth | inches | mm | inches |',
    field: 'snow_depth_inches',
    values: { raw: 3, metric: 76.2, imperial: 3 },
  },
]

export interface ReportTypeRow {
  readonly contract: string
  /** A date of the sample with such a record, and the type that is served by priority. */
  readonly served: { readonly date: string; readonly as: string }
}

export const CLIMATE_REPORT_TYPES: readonly ReportTypeRow[] = [
  {
    contract: '| final | highest | Official daily report |',
    served: { date: '2026-06-30', as: 'final' },
  },
  {
    contract: '| correction | high | Corrected report |',
    served: { date: '2026-06-30', as: 'final' },
  },
  {
    contract: '| preliminary | medium | Preliminary; not used for settlement |',
    served: { date: '2026-07-01', as: 'final' },
  },
  {
    contract: '| estimated | lowest | Gap filler derived from the climate-statistics provider |',
    served: { date: '2026-06-25', as: 'estimated' },
  },
]

/** Section 3: the resources with a state, and where each of its values occurs. */
export interface StateRow {
  readonly contract: string
  readonly target: string
  readonly field: string
  readonly values: readonly (string | boolean)[]
}

export const STATE_ROWS: readonly StateRow[] = [
  {
    contract: '| Market `status` | `active` |',
    target: '/api/v1/markets?series=KXHIGHNY',
    field: 'status',
    values: ['active'],
  },
  {
    contract: '| Health `status` | `ok`, `degraded` |',
    target: '/health',
    field: 'status',
    values: ['ok', 'degraded'],
  },
  {
    contract:
      '| Climate `report_type` | `final`, `correction`, `preliminary`, `estimated` (a priority ordering, see 2.3) |',
    target: '/api/v1/climate?station=NYC&revisions=true',
    field: 'report_type',
    values: ['final', 'correction', 'preliminary', 'estimated'],
  },
  {
    contract: '| Series `active` | true, false |',
    target: '/api/v1/series',
    field: 'active',
    values: [true, false],
  },
]
