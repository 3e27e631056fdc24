// What is said of a field of the data endpoints' records.

/**
 * What `units` converts, with the raw unit: `temperature` °F, `speed` knots, `pressure` inHg, `distance` statute miles,
 * `precipitation` and `snow_depth` inches. `none` is never converted: directions, percent, codes, and what the
 * interface's table leaves out (sea-level pressure, whose millibars are hectopascals already, and heights in feet).
 */
export type UnitKind =
  | 'temperature'
  | 'speed'
  | 'pressure'
  | 'distance'
  | 'precipitation'
  | 'snow_depth'
  | 'none'

/**
 * `instant` is milliseconds since the Unix epoch in memory; text formats give RFC 3339, parquet a UTC timestamp. `date`
 * is `YYYY-MM-DD` in memory; parquet gives a DATE. `integer` is INT32 in parquet, or INT64 when `isWide`.
 */
export type RecordFieldType = 'string' | 'date' | 'number' | 'integer' | 'boolean' | 'instant'

/** A record of texts and numbers in memory; `Special` has the fields that hold a few values alone. */
export type RecordOf<Field extends RecordField, Special = unknown> = {
  readonly [F in Field as F['name']]:
    | (F['name'] extends keyof Special
        ? Special[F['name']]
        : F['type'] extends 'string' | 'date'
          ? string
          : number)
    | (F['nullable'] extends true ? null : never)
}

export interface RecordField {
  readonly name: string
  readonly type: RecordFieldType
  readonly unit: UnitKind
  readonly nullable: boolean
  readonly isWide?: boolean
  /** Its values are times in nanoseconds, which no double holds: big integers in memory. */
  readonly isBig?: boolean
  readonly meaning: string
}
