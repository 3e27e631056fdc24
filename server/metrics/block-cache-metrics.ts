// What the cache of long order-book answers on disk holds and how often it served.

import type { Metric } from 'prom-client'
import type { BlockCache } from '../lob/block-cache.ts'
import { counterOf, gaugeOf } from './answer-cache-metrics.ts'

export function blockCacheMetrics(cache: BlockCache): Metric[] {
  const { figures } = cache
  return [
    counterOf('bookcast_block_cache_hits_total', 'Order-book answers served from disk.', () => figures.hits),
    counterOf(
      'bookcast_block_cache_misses_total',
      'Long order-book answers made because none was kept, or not of this state of the lake.',
      () => figures.misses,
    ),
    counterOf(
      'bookcast_block_cache_evictions_total',
      'Kept order-book answers given up for others.',
      () => figures.evicted,
    ),
    counterOf(
      'bookcast_block_cache_damaged_total',
      'Kept order-book answers given up because their bytes were not what was written.',
      () => figures.damaged,
    ),
    counterOf(
      'bookcast_block_cache_served_bytes_total',
      'Bytes of order-book answers served from disk.',
      () => figures.servedBytes,
    ),
    gaugeOf(
      'bookcast_block_cache_bytes',
      'Disk of kept order-book answers when room was last looked for.',
      () => cache.storedBytes,
    ),
  ]
}
