// The weather observation: every field, declared once in serving order. JSON, csv, parquet, SQL, OpenAPI and unit conversion are
// derived from its types, nullability and unit kinds. The first eleven fields are those of contract.md 17; the others are further
// values of a METAR.

import type { RecordField, RecordOf } from './record-field.ts'

export type { UnitKind } from './record-field.ts'

export const OBSERVATION_TYPES = ['METAR', 'SPECI'] as const
export type ObservationType = (typeof OBSERVATION_TYPES)[number]

/** The live feed, then the two archives, in the order of precedence (server/ingest/observation-precedence.ts). */
export const OBSERVATION_SOURCES = ['awc', 'iem', 'ncei'] as const
export type ObservationSource = (typeof OBSERVATION_SOURCES)[number]

/** Every served field, in serving order. */
// oxfmt-ignore
export const OBSERVATION_FIELDS = [
  { name: 'station_code', type: 'string', unit: 'none', nullable: false, meaning: 'Station code' },
  { name: 'observed_at', type: 'instant', unit: 'none', nullable: false, meaning: 'Observation time' },
  { name: 'observation_type', type: 'string', unit: 'none', nullable: false, meaning: '`METAR` (routine) or `SPECI` (special)' },
  { name: 'source', type: 'string', unit: 'none', nullable: false, meaning: 'Origin: `awc` (live feed), `iem` or `ncei` (archives)' },
  { name: 'temp_f', type: 'number', unit: 'temperature', nullable: true, meaning: 'Temperature' },
  { name: 'dewpoint_f', type: 'number', unit: 'temperature', nullable: true, meaning: 'Dewpoint' },
  { name: 'wind_speed_kt', type: 'number', unit: 'speed', nullable: true, meaning: 'Wind speed; 0 is calm, null is not reported' },
  { name: 'altimeter_inhg', type: 'number', unit: 'pressure', nullable: true, meaning: 'Altimeter setting' },
  { name: 'visibility_miles', type: 'number', unit: 'distance', nullable: true, meaning: 'Visibility; the bound itself where a report says more or less than it' },
  { name: 'sky_cover_1', type: 'string', unit: 'none', nullable: true, meaning: 'First sky-cover layer: CLR, SKC, FEW, SCT, BKN, OVC, VV' },
  { name: 'raw_metar', type: 'string', unit: 'none', nullable: true, meaning: 'Raw report text' },
  { name: 'relative_humidity', type: 'number', unit: 'none', nullable: true, meaning: 'Relative humidity, percent, from temperature and dewpoint' },
  { name: 'wind_dir_degrees', type: 'integer', unit: 'none', nullable: true, meaning: 'Direction the wind blows from; 0 is calm, null is variable or not reported' },
  { name: 'wind_gust_kt', type: 'number', unit: 'speed', nullable: true, meaning: 'Gust speed; null is no gust' },
  { name: 'sea_level_pressure_mb', type: 'number', unit: 'none', nullable: true, meaning: 'Sea-level pressure, millibars (hPa)' },
  { name: 'weather_codes', type: 'string', unit: 'none', nullable: true, meaning: 'Present weather as reported, separated by spaces' },
  { name: 'sky_base_1_ft', type: 'integer', unit: 'none', nullable: true, meaning: 'Base of the first layer above ground, feet' },
  { name: 'sky_cover_2', type: 'string', unit: 'none', nullable: true, meaning: 'Second sky-cover layer' },
  { name: 'sky_base_2_ft', type: 'integer', unit: 'none', nullable: true, meaning: 'Base of the second layer, feet' },
  { name: 'sky_cover_3', type: 'string', unit: 'none', nullable: true, meaning: 'Third sky-cover layer' },
  { name: 'sky_base_3_ft', type: 'integer', unit: 'none', nullable: true, meaning: 'Base of the third layer, feet' },
  { name: 'sky_cover_4', type: 'string', unit: 'none', nullable: true, meaning: 'Fourth sky-cover layer' },
  { name: 'sky_base_4_ft', type: 'integer', unit: 'none', nullable: true, meaning: 'Base of the fourth layer, feet' },
  { name: 'precip_1hr_inches', type: 'number', unit: 'precipitation', nullable: true, meaning: 'Precipitation since the last routine report; 0.0001 is a trace' },
  { name: 'snow_depth_inches', type: 'number', unit: 'snow_depth', nullable: true, meaning: 'Snow on the ground' },
  { name: 'peak_wind_speed_kt', type: 'number', unit: 'speed', nullable: true, meaning: 'Peak wind since the last routine report' },
  { name: 'peak_wind_dir_degrees', type: 'integer', unit: 'none', nullable: true, meaning: 'Direction of the peak wind' },
  { name: 'peak_wind_time', type: 'instant', unit: 'none', nullable: true, meaning: 'Time of the peak wind' },
  { name: 'feels_like_f', type: 'number', unit: 'temperature', nullable: true, meaning: 'Wind chill, heat index or temperature, by the NWS formulas' },
  { name: 'max_temp_6hr_f', type: 'number', unit: 'temperature', nullable: true, meaning: 'Maximum of the last 6 hours' },
  { name: 'min_temp_6hr_f', type: 'number', unit: 'temperature', nullable: true, meaning: 'Minimum of the last 6 hours' },
  { name: 'max_temp_24hr_f', type: 'number', unit: 'temperature', nullable: true, meaning: 'Maximum of the 24 hours to midnight local standard time' },
  { name: 'min_temp_24hr_f', type: 'number', unit: 'temperature', nullable: true, meaning: 'Minimum of the 24 hours to midnight local standard time' },
] as const satisfies readonly RecordField[]

type ServedObservation = RecordOf<
  (typeof OBSERVATION_FIELDS)[number],
  { readonly observation_type: ObservationType; readonly source: ObservationSource }
>

/** One observation in raw units. A null is "not reported" and never becomes 0. */
export interface Observation extends ServedObservation {
  /** When the feed received the report; stored, not served. Null for archives. */
  readonly received_at: number | null
}

/** The fields that are read from a report's text or an archive's columns: all but identity, origin and the text itself. */
export type Weather = Omit<
  Observation,
  'station_code' | 'observed_at' | 'observation_type' | 'source' | 'raw_metar' | 'received_at'
>

/** Precipitation too small to measure, as the IEM archive encodes it: more than 0, less than 0.01 inch. */
export const TRACE_INCHES = 0.0001
