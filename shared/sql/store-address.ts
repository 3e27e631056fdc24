// The address of the relational store and the conversion of its values to JavaScript, as options of the `postgres` driver. The
// address is plain data, so that it can be posted to a worker thread.

import { MS_PER_HOUR, MS_PER_MINUTE } from '../utc-date.ts'

/** A server's URL, or the Unix socket of the embedded store. */
export type StoreAddress =
  | { readonly kind: 'server'; readonly url: string }
  | { readonly kind: 'embedded'; readonly socketPath: string }

/** A PostgreSQL server ends a transaction whose client is idle for this long. */
const STORE_TRANSACTION_IDLE_MS = 60_000

export interface DriverSettings {
  readonly address: StoreAddress
  /** Identifies the connections in the server's views. */
  readonly applicationName: string
  /** The maximum of connections. */
  readonly connections: number
  readonly connectTimeoutMs: number
  readonly statementTimeoutMs: number
}

/**
 * Options for `postgres(url ?? '', options)`. Values that are read: int8 becomes a bigint, timestamptz milliseconds since the epoch
 * (number), date `YYYY-MM-DD`; json and jsonb are parsed; numeric is text; the others are as usual.
 */
export function driverOptions({ address, ...settings }: DriverSettings) {
  const isEmbedded = address.kind === 'embedded'
  return {
    ...(isEmbedded ? { path: address.socketPath, user: 'postgres', database: 'postgres', ssl: false } : {}),
    max: settings.connections,
    connect_timeout: settings.connectTimeoutMs / 1000,
    // The driver's replacement of an old connection would end a transaction that is open on it.
    max_lifetime: null,
    // Without preparation, a statement takes six times as long in the embedded store, and two turns of its session.
    prepare: true,
    // Omits a query per connection for array types, which are not used here. If interrupted, it would crash the process.
    fetch_types: false,
    // With its own back-off, the driver would wait up to 20 s before it reconnects, even if the store is available again.
    backoff: false,
    onnotice: () => {},
    types: VALUE_TYPES,
    connection: {
      application_name: settings.applicationName,
      TimeZone: 'UTC',
      statement_timeout: settings.statementTimeoutMs,
      idle_in_transaction_session_timeout: STORE_TRANSACTION_IDLE_MS,
    },
  }
}

const passText = (text: string): string => text

// Type OIDs: 20 int8, 1082 date, 1114 timestamp, 1184 timestamptz (pg_type.dat).
const VALUE_TYPES = {
  bigint: { to: 20, from: [20], serialize: String, parse: BigInt },
  day: { to: 1082, from: [1082], serialize: passText, parse: passText },
  instant: { to: 1184, from: [1114, 1184], serialize: passText, parse: parseInstant },
}

const INSTANT =
  /^(\d{4,})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:([+-])(\d\d)(?::?(\d\d))?(?::(\d\d))?)?$/

/**
 * Parses the server's ISO output (`2026-07-01 12:00:00.25+00`) to milliseconds since the epoch; microseconds are truncated. NaN for
 * any other text (`infinity`).
 */
function parseInstant(text: string): number {
  const match = INSTANT.exec(text)
  if (match === null) return Number.NaN
  const fraction = match[7] === undefined ? 0 : Number(match[7].padEnd(3, '0').slice(0, 3))
  const clockMs =
    Number(match[4]) * MS_PER_HOUR + Number(match[5]) * MS_PER_MINUTE + Number(match[6]) * 1000 + fraction
  const offsetMs =
    Number(match[9] ?? 0) * MS_PER_HOUR +
    Number(match[10] ?? 0) * MS_PER_MINUTE +
    Number(match[11] ?? 0) * 1000
  const dayMs = Date.UTC(Number(match[1]), Number(match[2]) - 1, Number(match[3]))
  return dayMs + clockMs - (match[8] === '-' ? -offsetMs : offsetMs)
}
