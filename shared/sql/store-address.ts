// Where the relational store listens and how its values become JavaScript values, as options of the `postgres`
// driver. The address is plain data, so that it can be posted to a worker thread. Opens nothing itself.

import { MS_PER_HOUR } from '../utc-date.ts'

/** A server's URL, or the Unix socket of the embedded store. */
export type StoreAddress =
  | { readonly kind: 'server'; readonly url: string }
  | { readonly kind: 'embedded'; readonly socketPath: string }

export interface DriverSettings {
  readonly applicationName: string
  /** Connections at once. */
  readonly connections: number
  readonly connectTimeoutMs: number
  readonly statementTimeoutMs: number
  readonly transactionIdleMs: number
}

/**
 * Options for `postgres(url ?? '', options)`. Read values: int8 is a bigint, timestamptz is milliseconds since the
 * epoch (number), date is `YYYY-MM-DD`, json and jsonb are parsed, numeric is text, the rest as usual.
 */
export function driverOptions(address: StoreAddress, settings: DriverSettings) {
  const isEmbedded = address.kind === 'embedded'
  return {
    ...(isEmbedded ? { path: address.socketPath, user: 'postgres', database: 'postgres', ssl: false } : {}),
    max: settings.connections,
    connect_timeout: settings.connectTimeoutMs / 1000,
    // A connection that is replaced while a transaction rests on it would end the transaction.
    max_lifetime: null,
    // A statement that is not prepared takes the embedded store six times as long, and two turns of its session.
    prepare: true,
    // A query per connection for array types, which nothing here uses; it crashes the process when it is cut off.
    fetch_types: false,
    // The driver would wait before it reconnects, up to 20 s, also when the store is back.
    backoff: false,
    onnotice: () => {},
    types: VALUE_TYPES,
    connection: {
      application_name: settings.applicationName,
      TimeZone: 'UTC',
      statement_timeout: settings.statementTimeoutMs,
      idle_in_transaction_session_timeout: settings.transactionIdleMs,
    },
  }
}

const passText = (text: string): string => text

// Object identifiers of types: 20 int8, 1082 date, 1114 timestamp, 1184 timestamptz (pg_type.dat).
const VALUE_TYPES = {
  bigint: { to: 20, from: [20], serialize: String, parse: BigInt },
  day: { to: 1082, from: [1082], serialize: passText, parse: passText },
  instant: { to: 1184, from: [1114, 1184], serialize: passText, parse: parseInstant },
}

const INSTANT =
  /^(\d{4,})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:([+-])(\d\d)(?::?(\d\d))?(?::(\d\d))?)?$/

/**
 * Milliseconds since the epoch of the server's ISO output (`2026-07-01 12:00:00.25+00`); microseconds are cut off.
 * Not a finite number for anything else (`infinity`).
 */
function parseInstant(text: string): number {
  const match = INSTANT.exec(text)
  if (match === null) return Number.NaN
  const fraction = match[7] === undefined ? 0 : Number(match[7].padEnd(3, '0').slice(0, 3))
  const clockMs =
    Number(match[4]) * MS_PER_HOUR + Number(match[5]) * 60_000 + Number(match[6]) * 1000 + fraction
  const offsetMs =
    Number(match[9] ?? 0) * MS_PER_HOUR + Number(match[10] ?? 0) * 60_000 + Number(match[11] ?? 0) * 1000
  const dayMs = Date.UTC(Number(match[1]), Number(match[2]) - 1, Number(match[3]))
  return dayMs + clockMs - (match[8] === '-' ? -offsetMs : offsetMs)
}
