// The state of the service's dependencies (contract.md 24). Each database gets a real query with a short timeout. All requests
// within a second share one round of queries, so that health requests cost almost nothing.

import { HEALTH_CHECK_TIMEOUT_MS, HEALTH_STALE_MS } from '../../shared/limits.ts'
import type { ReadTradeProof, TradeProof } from '../storage/trade-proof-store.ts'
import type { SyncStatus } from './lake-scan.ts'

const HEALTH_REUSE_MS = 1_000

/** Resolves to whether a database answered a query in time. Never rejects. */
export type DatabaseCheck = (timeoutMs: number) => Promise<boolean>

export interface HealthReport {
  readonly status: 'ok' | 'degraded'
  readonly embedded_db: 'ok' | 'error'
  /** `off` if the server runs without a relational store. */
  readonly hosted_db: 'ok' | 'error' | 'off'
  readonly sync: {
    /** RFC 3339; null before the first one. */
    readonly last_sync: string | null
    readonly file_count: number
    readonly is_stale: boolean
  }
  /** Only if trades were compared with candles. `share`: the proven part of the minutes. */
  readonly trades?: TradeProof & { readonly share: number }
  /** Only if sample data is served. */
  readonly samples?: ServedSamples
}

export interface ServedSamples {
  /** Order-book files. */
  readonly files: number
  /** Whether the relational store holds the sample records. */
  readonly records: boolean
}

export interface HealthSources {
  readonly embeddedDb: DatabaseCheck
  /** Null if no store is configured. */
  readonly hostedDb: DatabaseCheck | null
  readonly sync: () => SyncStatus
  /** The sample data that is served; none by default. */
  readonly samples?: () => Promise<ServedSamples>
  readonly tradeProof?: ReadTradeProof | undefined
  readonly nowMs?: () => number
}

/** The report of each call. */
export function healthMonitor(sources: HealthSources): () => Promise<HealthReport> {
  const { embeddedDb, hostedDb, nowMs = () => Date.now() } = sources
  const startedMs = nowMs()
  let round: Promise<readonly [boolean, boolean | null]> | undefined
  let roundMs = 0
  const check = (): Promise<readonly [boolean, boolean | null]> => {
    if (round !== undefined && nowMs() - roundMs <= HEALTH_REUSE_MS) return round
    roundMs = nowMs()
    return (round = Promise.all([
      embeddedDb(HEALTH_CHECK_TIMEOUT_MS),
      hostedDb?.(HEALTH_CHECK_TIMEOUT_MS) ?? null,
    ]))
  }
  return async () => {
    const [isEmbeddedOk, isHostedOk] = await check()
    const { lastSyncMs, fileCount } = sources.sync()
    // Before the first sync the age of the process counts, so that a sync that never happens is noticed too.
    const isStale = nowMs() - (lastSyncMs ?? startedMs) > HEALTH_STALE_MS
    const proof = await sources.tradeProof?.()
    const samples = (await sources.samples?.()) ?? { files: 0, records: false }
    return {
      status: isEmbeddedOk && isHostedOk !== false && !isStale ? 'ok' : 'degraded',
      embedded_db: isEmbeddedOk ? 'ok' : 'error',
      hosted_db: isHostedOk === null ? 'off' : isHostedOk ? 'ok' : 'error',
      sync: {
        last_sync: lastSyncMs === null ? null : new Date(lastSyncMs).toISOString(),
        file_count: fileCount,
        is_stale: isStale,
      },
      ...(proof === undefined ? {} : { trades: { ...proof, share: proof.proven / proof.minutes } }),
      ...(samples.files > 0 || samples.records ? { samples } : {}),
    }
  }
}
