// The declaration of a field in the records of the data endpoints.

/**
 * The quantities that `units` converts, with their raw unit: `temperature` °F, `speed` knots, `pressure` inHg, `distance` statute
 * miles, `precipitation` and `snow_depth` inches. `none` is never converted: directions, percent, codes, sea-level pressure
 * (whose millibars are hectopascals already) and heights in feet.
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
 * `instant` is milliseconds since the Unix epoch in memory, RFC 3339 in text formats, a UTC timestamp in parquet. `date` is
 * `YYYY-MM-DD` in memory and a DATE in parquet. `integer` is INT32 in parquet, or INT64 if `isWide`.
 */
export type RecordFieldType = 'string' | 'date' | 'number' | 'integer' | 'boolean' | 'instant'

/** A record of texts and numbers in memory. `Special` has the types of fields with only a few values. */
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
  /** Its values are times in nanoseconds, which doubles cannot represent: BigInts in memory. */
  readonly isBig?: boolean
  readonly meaning: string
}
