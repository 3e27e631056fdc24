// One run of one source, step by step. Each step is fetched completely, then written in one transaction together with its completed
// window. A failed step is recorded under its scope and the next one follows, unless the upstream is down or busy: then the run
// ends.

import {
  completeWindow,
  missingWindows,
  recordFailure,
  recordSuccess,
  type TimeWindow,
} from '../storage/cursor-store.ts'
import type { FetchedRows, IngestSource, IngestStep, SourceContext, SourceName } from './source.ts'
import { UpstreamError } from '../upstream/upstream-error.ts'

/** Characters of a failure's text in the status table. */
const INGEST_FAILURE_CHARACTERS_MAX = 500

/** Failures after which every other request to the upstream would fail too. */
const UPSTREAM_DOWN: ReadonlySet<string> = new Set(['unreachable', 'timeout', 'rate_limited', 'server_error'])

/** Events during a run. */
export type IngestEvent = { readonly source: SourceName; readonly scope: string; readonly title: string } & (
  | { readonly kind: 'written'; readonly rowCount: number }
  | { readonly kind: 'failed'; readonly error: UpstreamError }
  | { readonly kind: 'rejected'; readonly problems: readonly string[] }
)

export type RunOutcome = Awaited<ReturnType<typeof runSteps>>

export interface RunOptions extends SourceContext {
  readonly onEvent?: ((event: IngestEvent) => void) | undefined
  /** Of a backfill: the steps done and, if known, the total. */
  readonly onStep?: ((doneCount: number, totalCount: number | null) => void) | undefined
}

/** Requests new data from a source. Throws `StoreError` if the store fails, and the signal's reason on abort. */
export async function pollSource(source: IngestSource, options: RunOptions): Promise<RunOutcome> {
  return await runSteps(source, source.poll(options), options)
}

/**
 * Fetches the parts of a span that are not complete, window by window. After an interruption, call it again: it continues with the
 * first incomplete window.
 */
export async function backfillSource(
  source: IngestSource,
  span: TimeWindow,
  options: RunOptions,
): Promise<RunOutcome> {
  const { history } = source
  if (history === null) return await runSteps(source, [], options)
  let totalCount: number | null = null
  const steps = async function* (): AsyncGenerator<IngestStep, void, void> {
    const first = await history.first?.(span, options)
    if (first) yield first
    const rest: IngestStep[] = []
    for (const scope of await history.scopes(options)) {
      const cursor = { source: source.name, scope }
      const missing =
        (await history.missing?.(scope, span, options)) ??
        (await missingWindows(options.postgres, cursor, span, options.clock.nowMs()))
      for (const window of missing.flatMap((part) => history.windows(part))) {
        rest.push(history.step(scope, window, options))
      }
    }
    totalCount = rest.length + (first ? 1 : 0)
    yield* rest
  }
  const outcome = await runSteps(source, steps(), options, () => totalCount)
  await history.last?.(span, options)
  return outcome
}

async function runSteps(
  source: IngestSource,
  steps: AsyncIterable<IngestStep> | Iterable<IngestStep>,
  options: RunOptions,
  totalCount: () => number | null = () => null,
) {
  const failed: UpstreamError[] = []
  let stepCount = 0
  let rowCount = 0
  let rejectedCount = 0
  let isDown = false
  for await (const step of steps) {
    options.signal.throwIfAborted()
    const name = { source: source.name, scope: step.scope, title: step.title }
    try {
      const fetched = await step.fetch()
      const changed = await store(source, step, fetched, options)
      rowCount += changed
      rejectedCount += fetched.problems.length
      if (fetched.problems.length > 0) {
        options.onEvent?.({ kind: 'rejected', ...name, problems: fetched.problems })
      }
      options.onEvent?.({ kind: 'written', ...name, rowCount: changed })
    } catch (error) {
      options.signal.throwIfAborted()
      if (!(error instanceof UpstreamError)) throw error
      failed.push(error)
      options.onEvent?.({ kind: 'failed', ...name, error })
      await noteFailure(source, step, error, options)
      isDown = UPSTREAM_DOWN.has(error.failure)
    }
    stepCount += 1
    options.onStep?.(stepCount, totalCount())
    if (isDown) break
  }
  return {
    stepCount,
    rowCount,
    /** Failed steps and rejected entries. */
    errorCount: failed.length + rejectedCount,
    /** The last failure of a step. */
    failure: failed.at(-1) ?? null,
    /** Whether the next run must back off: the upstream is down or busy, or every step failed. */
    needsBackoff: isDown || (failed.length > 0 && failed.length === stepCount),
  }
}

async function store(
  source: IngestSource,
  step: IngestStep,
  fetched: FetchedRows,
  { postgres, clock, signal }: RunOptions,
): Promise<number> {
  const cursor = { source: source.name, scope: step.scope }
  const rowCount = await postgres.transaction(
    async (transaction) => {
      const changed = await fetched.write(transaction)
      if (fetched.completed) await completeWindow(transaction, cursor, fetched.completed)
      await recordSuccess(transaction, cursor, clock.nowMs(), changed)
      return changed
    },
    { signal },
  )
  fetched.committed?.()
  return rowCount
}

async function noteFailure(
  source: IngestSource,
  step: IngestStep,
  error: UpstreamError,
  { postgres, clock, signal }: RunOptions,
): Promise<void> {
  const message = `${error.failure}: ${error.message}`.slice(0, INGEST_FAILURE_CHARACTERS_MAX)
  await postgres.transaction(
    (transaction) =>
      recordFailure(transaction, { source: source.name, scope: step.scope }, clock.nowMs(), message),
    { signal },
  )
}
