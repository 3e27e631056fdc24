// What the cache of small answers holds and how often it served.

import { Counter, Gauge, type Metric, type Registry } from 'prom-client'
import type { AnswerCache, AnswerCacheFigures } from '../answers/answer-cache.ts'

// Without the list a metric would join the library's global registry.
const registers: Registry[] = []

export function counterOf(name: string, help: string, read: () => number): Counter {
  return new Counter({
    name,
    help,
    registers,
    collect() {
      this.reset()
      this.inc(read())
    },
  })
}

export function gaugeOf(name: string, help: string, read: () => number): Gauge {
  return new Gauge({
    name,
    help,
    registers,
    collect() {
      this.set(read())
    },
  })
}

export function answerCacheMetrics(cache: AnswerCache): Metric[] {
  const figures: AnswerCacheFigures = cache.figures
  return [
    counterOf(
      'bookcast_answer_cache_hits_total',
      'Requests answered with bytes that were made for another one.',
      () => figures.hits,
    ),
    counterOf(
      'bookcast_answer_cache_misses_total',
      'Answers made because none was kept, or not of this state of the data.',
      () => figures.misses,
    ),
    counterOf(
      'bookcast_answer_cache_evictions_total',
      'Kept answers given up for others.',
      () => figures.evicted,
    ),
    gaugeOf(
      'bookcast_answer_cache_bytes',
      'Memory of answers that are kept or being sent.',
      () => cache.usedBytes,
    ),
    gaugeOf('bookcast_answer_cache_answers', 'Answers that are kept.', () => cache.count),
  ]
}
