// Requests that ask for the same at the same time share the work. Work that is under way may have looked at what has
// changed since, so whoever comes then shares the next round with all others who come meanwhile; it begins when the one
// under way is over. So everybody's answer is made from what was there when it asked, or later.

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

  /** Rejects with what the work rejects with, for all who share it alike, or when `signal` is aborted first. */
  async join(key: string, signal: AbortSignal, maker: RoundMaker<Result>): Promise<Result> {
    const round = this.#roundOf(key, maker)
    round.waiting += 1
    try {
      return await unlessAborted(round.result, signal)
    } finally {
      round.waiting -= 1
      const { running, next } = this.#lines.get(key) ?? {}
      if (next?.waiting === 0) abandon(next)
      // What it keeps spares those who come after it the same work.
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
    // One that everybody has left before it began is not begun.
    if (line.next === undefined || line.next.controller.signal.aborted)
      line.next = this.#begin(key, line.running.result, maker)
    return line.next
  }

  /** A round that starts when the one before it is over. */
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
