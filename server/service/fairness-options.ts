// The options that limit what one client may hold of the shared resources, and the rate that it must keep.

import type { OptionDeclaration, ParsedOptions } from '../options/options.ts'
import { integerOption } from '../options/options.ts'
import { DESCRIPTORS_RESERVED } from '../http/descriptor-limit.ts'
import { type ClientShares, DEFAULT_SHARES } from '../workers/client-shares.ts'

const FAIR_RATE_MAX = 1_000_000_000
const QUEUE_MS_MAX = 60_000
const SLOTS_MAX = 4
const REQUESTS_MAX = 200
const ROWS_MAX = 2_000_000
const CONNECTIONS_MAX = 1_000_000
const ANSWER_CACHE_MB_MAX = 16_384
export const ANSWER_CACHE_MB_DEFAULT = 64

export const FAIRNESS_OPTIONS = [
  {
    name: 'fair-rate',
    placeholder: '<bytes/s>',
    description: 'cut off a slower stream when another request needs its slot; 0 disables this',
    default: String(DEFAULT_SHARES.fairBytesPerS),
  },
  {
    name: 'queue-ms',
    placeholder: '<ms>',
    description: 'time an order-book or bulk request waits for a slot before the server responds 429',
    default: String(DEFAULT_SHARES.queueMs),
  },
  {
    name: 'client-slots',
    placeholder: '<n>',
    description: 'order-book requests of one client (key or address) at once',
    default: String(DEFAULT_SHARES.slots),
  },
  {
    name: 'client-requests',
    placeholder: '<n>',
    description: 'small requests for candles, observations and climate of one client at once',
    default: String(DEFAULT_SHARES.requests),
  },
  {
    name: 'client-rows',
    placeholder: '<n>',
    description: 'rows that the long requests of one client may request in total',
    default: String(DEFAULT_SHARES.rows),
  },
  {
    name: 'max-connections',
    placeholder: '<n>',
    description: `open connections; the server closes further ones. At most the descriptor limit less ${DESCRIPTORS_RESERVED}`,
    default: '10000',
  },
  {
    name: 'client-connections',
    placeholder: '<n>',
    description:
      'open connections of one address (default: a tenth of all); not applied with --trusted-proxies',
  },
  {
    name: 'answer-cache-mb',
    placeholder: '<n>',
    description: 'memory for repeated small responses; 0 disables this cache',
    default: String(ANSWER_CACHE_MB_DEFAULT),
  },
] as const satisfies readonly OptionDeclaration[]

export interface FairnessConfig {
  readonly shares: ClientShares
  /** Fewer if the process may not open as many files. */
  readonly connectionsMax: number
  /** Per address; a tenth of all if undefined. */
  readonly clientConnectionsMax?: number
  readonly answerCacheMb: number
}

function integerOf(options: ParsedOptions, name: string, min: number, max: number): number {
  return integerOption(options.demand(name), min, max)
}

/** @throws {UsageError} that names the option at fault */
export function readFairness(options: ParsedOptions): FairnessConfig {
  const clientConnections = options.get('client-connections')
  return {
    shares: {
      fairBytesPerS: integerOf(options, 'fair-rate', 0, FAIR_RATE_MAX),
      queueMs: integerOf(options, 'queue-ms', 0, QUEUE_MS_MAX),
      slots: integerOf(options, 'client-slots', 1, SLOTS_MAX),
      requests: integerOf(options, 'client-requests', 1, REQUESTS_MAX),
      rows: integerOf(options, 'client-rows', 1, ROWS_MAX),
    },
    connectionsMax: integerOf(options, 'max-connections', 1, CONNECTIONS_MAX),
    ...(clientConnections && {
      clientConnectionsMax: integerOption(clientConnections, 1, CONNECTIONS_MAX),
    }),
    answerCacheMb: integerOf(options, 'answer-cache-mb', 0, ANSWER_CACHE_MB_MAX),
  }
}
