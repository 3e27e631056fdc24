// Candles of the markets that the catalogue lists. A poll requests the last minutes of every open market, in batches, and
// hours and days when one has ended. It also looks once more at the markets of one settled event; candle-history.ts fetches
// the past. Only finished periods with a trade are stored, so that a candle never changes once its minute is over.

import { writeCandles } from '../../storage/candle-store.ts'
import {
  CLOCKS_APART_MS_MAX,
  completedWindows,
  readCursorState,
  writeCursorState,
} from '../../storage/cursor-store.ts'
import type { IngestSource, IngestStep, SourceContext } from '../source.ts'
import { candleHistory, lateLook } from './candle-history.ts'
import { candleMarkets } from './candle-markets.ts'
import { fetchBatches } from './candle-batches.ts'
import type { KalshiClient } from '../../exchanges/kalshi/rest-client.ts'

/** A poll requests at least this much past: the exchange's responses are cached, and a trade may be reported late. */
const EXCHANGE_CANDLE_OVERLAP_MS = 10 * 60 * 1000
/** A poll requests at most this much past; a backfill fetches what is older. */
const EXCHANGE_CANDLE_CATCH_UP_MS_MAX = 3 * 24 * 60 * 60 * 1000

const NAME = 'exchange-candles'
const LIVE = 'live'
const CURSOR = { source: NAME, scope: LIVE } as const

export interface CandleSourceOptions {
  readonly client: KalshiClient
  readonly intervalMs: number
}

export function candleSource({ client, intervalMs }: CandleSourceOptions): IngestSource {
  let polls = 0
  return {
    name: NAME,
    intervalMs,
    history: candleHistory(client),
    async *poll(context) {
      const { postgres, clock } = context
      const completed = await completedWindows(postgres, CURSOR)
      const { known: stored } = await readCursorState<{ known: readonly string[] }>(postgres, CURSOR)
      const known = new Set(stored)
      yield liveStep(client, { completedToMs: completed.at(-1)?.toMs ?? null, known }, clock.nowMs(), context)
      const look = await lateLook(client, context, polls++)
      // A scope per event would grow without bound, and scopes of old events would look late forever.
      if (look !== undefined) yield { ...look, scope: LIVE }
    },
    close: () => client.close(),
  }
}

/** The progress of earlier polls. */
interface LiveState {
  readonly completedToMs: number | null
  /** Markets whose candles are stored up to then. Other markets are requested from their start. */
  readonly known: ReadonlySet<string>
}

function liveStep(client: KalshiClient, state: LiveState, nowMs: number, context: SourceContext): IngestStep {
  const earliestMs = nowMs - EXCHANGE_CANDLE_CATCH_UP_MS_MAX
  const { completedToMs } = state
  // A time in the future was written with a fast clock.
  const isKnown = completedToMs !== null && completedToMs <= nowMs + CLOCKS_APART_MS_MAX
  const knownToMs = isKnown ? Math.max(completedToMs, earliestMs) : earliestMs
  const fromMs = Math.min(knownToMs, nowMs - EXCHANGE_CANDLE_OVERLAP_MS)
  return {
    scope: LIVE,
    title: `open markets since ${new Date(fromMs).toISOString().slice(0, 16)}Z`,
    async fetch() {
      const { signal } = context
      const markets = await candleMarkets(context, { fromMs, toMs: nowMs })
      const old = markets.filter(({ ticker }) => state.known.has(ticker))
      const fresh = markets.filter(({ ticker }) => !state.known.has(ticker))
      const found = [
        await fetchBatches(client, old, { fromMs, toMs: nowMs }, signal),
        await fetchBatches(client, fresh, { fromMs: earliestMs, toMs: nowMs }, signal),
      ]
      return {
        async write(transaction) {
          // A refused market is requested from its start once it is no longer refused.
          const isRefused = (ticker: string): boolean => found.some(({ refused }) => refused.has(ticker))
          const known = markets.map(({ ticker }) => ticker).filter((ticker) => !isRefused(ticker))
          const isSame = known.length === state.known.size && known.every((ticker) => state.known.has(ticker))
          if (!isSame) await writeCursorState(transaction, CURSOR, { known })
          return await writeCandles(
            transaction,
            found.flatMap(({ rows }) => rows),
          )
        },
        problems: found.flatMap(({ rejected }) => rejected),
        // Without a catalogue, nothing was requested.
        ...(markets.length === 0 ? {} : { completed: { fromMs, toMs: nowMs } }),
      }
    },
  }
}
