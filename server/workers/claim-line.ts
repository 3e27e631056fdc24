// The order of claims: no client gets a permit while a client that holds fewer waits or is owed one. Of clients that hold
// equally many, the first to come is served first.

import { OwedPermits } from './owed-permits.ts'

export interface WaitingClaim {
  readonly client: string
  readonly count: number
}

export class ClaimLine<Claim extends WaitingClaim> {
  readonly #waiting = new Set<Claim>()
  readonly #heldCounts = new Map<string, number>()

  get waitingCount(): number {
    return this.#waiting.size
  }

  readonly heldBy = (client: string): number => this.#heldCounts.get(client) ?? 0

  readonly owed = new OwedPermits(this.heldBy)

  enter(claim: Claim): void {
    this.owed.cameBack(claim.client)
    this.#waiting.add(claim)
  }

  leave(claim: Claim): void {
    this.#waiting.delete(claim)
  }

  granted(client: string, count: number): void {
    this.owed.cameBack(client)
    this.#heldCounts.set(client, this.heldBy(client) + count)
  }

  gaveBack(client: string, count: number): void {
    this.owed.gaveBack(client)
    const heldCount = this.heldBy(client) - count
    if (heldCount === 0) this.#heldCounts.delete(client)
    else this.#heldCounts.set(client, heldCount)
  }

  get next(): Claim | undefined {
    let next: Claim | undefined
    for (const claim of this.#waiting)
      if (next === undefined || this.heldBy(claim.client) < this.heldBy(next.client)) next = claim
    return next
  }

  get last(): Claim | undefined {
    let last: Claim | undefined
    for (const claim of this.#waiting)
      if (last === undefined || this.heldBy(claim.client) >= this.heldBy(last.client)) last = claim
    return last
  }

  /** Permits that go to others before a new claim of the client. */
  countBefore(client: string, when?: 'ever'): number {
    let count = this.owed.countBefore(client, when)
    if (this.#waiting.size === 0) return count
    const heldCount = this.heldBy(client)
    for (const claim of this.#waiting) if (this.heldBy(claim.client) <= heldCount) count += claim.count
    return count
  }
}
