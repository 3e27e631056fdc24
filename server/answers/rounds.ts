// Concurrent requests for the same answer share the work. Work that is running may have read data that has changed since. So a
// request that comes then joins the next round, which starts when the running one is over. Every answer is therefore made
// from data as of its request, or later.

/** Does the work of a round. The signal is aborted when no request waits for this round or the next one. */
export type RoundMaker<Result> = (signal: AbortSignal) => Promise<Result>

interface Round<Result> {
  readonly controller: AbortController
  readonly result: Promise<Result>
  waiting: number
  isOver: boolean
}

interface Line<Result> {
  running: Round<Result>
  next: Round<Result> | undefined
}

export class Rounds<Result> {
  readonly #lines = new Map<string, Line<Result>>()

  /** Rejects as the work does, for all requests that share it, or when `signal` is aborted first. */
  async join(key: string, signal: AbortSignal, maker: RoundMaker<Result>): Promise<Result> {
    const round = this.#roundOf(key, maker)
    round.waiting += 1
    try {
      return await unlessAborted(round.result, signal)
    } finally {
      round.waiting -= 1
      const { running, next } = this.#lines.get(key) ?? {}
      if (next?.waiting === 0) abandon(next)
      // The running round is not aborted while requests wait for the next one: what it caches spares them the work.
      if (running?.waiting === 0 && (next?.waiting ?? 0) === 0) abandon(running)
    }
  }

  #roundOf(key: string, maker: RoundMaker<Result>): Round<Result> {
    const line = this.#lines.get(key)
    if (line === undefined) {
      const running = this.#begin(key, Promise.resolve(), maker)
      this.#lines.set(key, { running, next: undefined })
      return running
    }
    // A round that all requests left before it started is not started.
    if (line.next === undefined || line.next.controller.signal.aborted)
      line.next = this.#begin(key, line.running.result, maker)
    return line.next
  }

  /** A round that starts when the previous one is over. */
  #begin(key: string, before: Promise<unknown>, maker: RoundMaker<Result>): Round<Result> {
    const controller = new AbortController()
    const make = async (): Promise<Result> => {
      controller.signal.throwIfAborted()
      return maker(controller.signal)
    }
    const result = before.then(make, make)
    const round: Round<Result> = { controller, result, waiting: 0, isOver: false }
    const end = (): void => {
      round.isOver = true
      const line = this.#lines.get(key)
      if (line?.running !== round) return
      if (line.next === undefined) this.#lines.delete(key)
      else this.#lines.set(key, { running: line.next, next: undefined })
    }
    void result.then(end, end)
    return round
  }
}

function abandon<Result>({ controller, isOver }: Round<Result>): void {
  if (!isOver) controller.abort(new Error('no request waits for the round'))
}

async function unlessAborted<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    void result.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
