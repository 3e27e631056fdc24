// The size of the cache of small answers, and how often it was used.

import type { Metric } from 'prom-client'
import type { AnswerCache, AnswerCacheFigures } from '../answers/answer-cache.ts'
import { metricOf } from './read-metrics.ts'

export function answerCacheMetrics(cache: AnswerCache): Metric[] {
  const figures: AnswerCacheFigures = cache.figures
  return [
    metricOf(
      'bookcast_answer_cache_hits_total',
      'Requests answered with bytes that were made for another one.',
      () => figures.hits,
    ),
    metricOf(
      'bookcast_answer_cache_misses_total',
      'Answers made because none was kept, or not of this state of the data.',
      () => figures.misses,
    ),
    metricOf(
      'bookcast_answer_cache_evictions_total',
      'Kept answers given up for others.',
      () => figures.evicted,
    ),
    metricOf(
      'bookcast_answer_cache_bytes',
      'Memory of answers that are kept or being sent.',
      () => cache.usedBytes,
    ),
    metricOf('bookcast_answer_cache_answers', 'Answers that are kept.', () => cache.count),
  ]
}
