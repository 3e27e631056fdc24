// The rows of one row group as columns, filled row by row and reused from group to group. It knows no file and checks
// nothing; LobFileContents does.

import { LOB_ROW_GROUP_ROWS_MAX } from '../../shared/limits.ts'
import { NS_PER_DAY } from '../../shared/utc-date.ts'

// Each column has its own buffer: apache-arrow's IPC writer merges neighbouring pieces of one ArrayBuffer and then writes
// fewer bytes than it announces.
export class LobRowGroup {
  readonly capacity: number
  readonly ts: BigInt64Array<ArrayBuffer>
  readonly recvTs: BigInt64Array<ArrayBuffer>
  readonly seq: BigInt64Array<ArrayBuffer>
  /** Index into `markets`, never decreasing. */
  readonly market: Int32Array<ArrayBuffer>
  readonly event: Uint8Array<ArrayBuffer>
  readonly side: Uint8Array<ArrayBuffer>
  readonly price: Int32Array<ArrayBuffer>
  readonly qty: BigInt64Array<ArrayBuffer>
  /** Market ids of this group, ascending by their UTF-8 bytes. */
  readonly markets: string[] = []
  rows = 0
  readonly #sinceMidnight: Float64Array
  readonly #lag: Float64Array

  constructor(capacity: number = LOB_ROW_GROUP_ROWS_MAX) {
    this.capacity = capacity
    this.ts = new BigInt64Array(capacity)
    this.recvTs = new BigInt64Array(capacity)
    this.seq = new BigInt64Array(capacity)
    this.market = new Int32Array(capacity)
    this.event = new Uint8Array(capacity)
    this.side = new Uint8Array(capacity)
    this.price = new Int32Array(capacity)
    this.qty = new BigInt64Array(capacity)
    this.#sinceMidnight = new Float64Array(capacity)
    this.#lag = new Float64Array(capacity)
  }

  get isFull(): boolean {
    return this.rows === this.capacity
  }

  /** The rows added from now on belong to `id`. */
  startMarket(id: string): void {
    if (this.markets.at(-1) !== id) this.markets.push(id)
  }

  add(
    ts: bigint,
    recvTs: bigint,
    seq: bigint,
    event: number,
    side: number,
    price: number,
    qty: bigint,
  ): void {
    const row = this.rows
    this.ts[row] = ts
    this.recvTs[row] = recvTs
    this.seq[row] = seq
    this.market[row] = this.markets.length - 1
    this.event[row] = event
    this.side[row] = side
    this.price[row] = price
    this.qty[row] = qty
    this.rows = row + 1
  }

  /**
   * The times of the rows as doubles: ns since the midnight of the first row's date, and the receive time minus the time. The next
   * call overwrites the same arrays. It computes with 32-bit halves, because bigints would be allocated for every row.
   */
  times(): { readonly midnight: bigint; readonly ts: Float64Array; readonly lag: Float64Array } {
    const midnight = this.ts[0]! - (this.ts[0]! % NS_PER_DAY)
    const [baseHigh, baseLow] = [Number(midnight >> 32n), Number(midnight & 0xffff_ffffn)]
    const [times, received] = [new Uint32Array(this.ts.buffer), new Uint32Array(this.recvTs.buffer)]
    const [ts, lag] = [this.#sinceMidnight, this.#lag]
    for (let row = 0; row < this.rows; row++) {
      const [low, high] = [times[2 * row]!, times[2 * row + 1]!]
      ts[row] = (high - baseHigh) * 2 ** 32 + (low - baseLow)
      lag[row] = (received[2 * row + 1]! - high) * 2 ** 32 + (received[2 * row]! - low)
    }
    return { midnight, ts, lag }
  }

  clear(): void {
    this.rows = 0
    this.markets.length = 0
  }
}
