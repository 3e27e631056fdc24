// The state of what the service depends on (contract.md 24). Each database is asked a real query with a short
// time-out. One round of queries answers everybody who asks within a second, so that asking costs nothing to speak of.

import { HEALTH_CHECK_TIMEOUT_MS, HEALTH_STALE_MS } from '../../shared/limits.ts'
import type { ReadTradeProof, TradeProof } from '../storage/trade-proof-store.ts'
import type { SyncStatus } from './lake-scan.ts'

const HEALTH_REUSE_MS = 1_000

/** Resolves to whether a database answered a query in time. Never rejects. */
export type DatabaseCheck = (timeoutMs: number) => Promise<boolean>

export interface HealthReport {
  readonly status: 'ok' | 'degraded'
  readonly embedded_db: 'ok' | 'error'
  /** `off` where the server runs without a relational store. */
  readonly hosted_db: 'ok' | 'error' | 'off'
  readonly sync: {
    /** RFC 3339; null before the first one. */
    readonly last_sync: string | null
    readonly file_count: number
    readonly is_stale: boolean
  }
  /** Only where trades were compared with candles. `share`: proven ones of the minutes. */
  readonly trades?: TradeProof & { readonly share: number }
  /** Only where invented data is served. */
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
  /** Null where no store is wanted. */
  readonly hostedDb: DatabaseCheck | null
  readonly sync: () => SyncStatus
  /** What is served that was invented; by default nothing. */
  readonly samples?: () => Promise<ServedSamples>
  readonly tradeProof?: ReadTradeProof | undefined
  readonly nowMs?: () => number
}

export class HealthMonitor {
  readonly #sources: HealthSources
  readonly #nowMs: () => number
  readonly #startedMs: number
  #round: Promise<readonly [boolean, boolean | null]> | undefined
  #roundMs = 0

  constructor(sources: HealthSources) {
    this.#sources = sources
    this.#nowMs = sources.nowMs ?? (() => Date.now())
    this.#startedMs = this.#nowMs()
  }

  async report(): Promise<HealthReport> {
    const [isEmbeddedOk, isHostedOk] = await this.#check()
    const { lastSyncMs, fileCount } = this.#sources.sync()
    // Before the first sync its age is that of the process: one that never comes is noticed as well.
    const isStale = this.#nowMs() - (lastSyncMs ?? this.#startedMs) > HEALTH_STALE_MS
    const proof = await this.#sources.tradeProof?.()
    const samples = (await this.#sources.samples?.()) ?? { files: 0, records: false }
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

  #check(): Promise<readonly [boolean, boolean | null]> {
    const nowMs = this.#nowMs()
    if (this.#round === undefined || nowMs - this.#roundMs > HEALTH_REUSE_MS) {
      this.#roundMs = nowMs
      const { embeddedDb, hostedDb } = this.#sources
      this.#round = Promise.all([
        embeddedDb(HEALTH_CHECK_TIMEOUT_MS),
        hostedDb?.(HEALTH_CHECK_TIMEOUT_MS) ?? null,
      ])
    }
    return this.#round
  }
}
