// The files that a recorder publishes for a date equal a fold of its raw segments, byte for byte: over midnight, with several
// connections, restarts, pauses, network outages, lost messages and a wrong clock.

import assert from 'node:assert/strict'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Folding } from '../../server/fold/fold-order.ts'
import { FoldTally } from '../../server/fold/fold-tally.ts'
import { aliveMark, closeMark, openMark } from '../../server/feed/wal-mark.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { lobSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { SeededRandom } from '../import/pieces/seeded-random.ts'
import { runs } from '../support/effort.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { parquetFilesBelow, refold } from '../support/refolded-lake.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'

const SEEDS = runs(3, 60, 'REFOLD_RUNS')
const ONLY = process.env['REFOLD_SEED']
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const MARKETS = ['KXHIGHNY-26JUN24-T82', 'KXHIGHNY-26JUN24-B81.5', 'KXHIGHCHI-26JUN24-T90'] as const
const CONDITION = `0x${'ab'.repeat(32)}`
const TOKENS = ['101', '102', '103'] as const

/** The messages that one lane receives and sends while it is connected. */
class Lane {
  readonly #source: LobSource
  readonly #random: SeededRandom
  readonly #number: number
  readonly #markets: readonly number[]
  #begunMs = 0
  #seq = 0
  #sid = 0
  #saidMs = 0
  isOpen = false

  constructor(source: LobSource, random: SeededRandom, number: number, markets: readonly number[]) {
    this.#source = source
    this.#random = random
    this.#number = number
    this.#markets = markets
  }

  open(ms: number): ScriptRecord[] {
    this.isOpen = true
    this.#begunMs = ms
    this.#saidMs = ms
    const records = [this.#record(ms, openMark(), WAL_KIND.mark)]
    return [...records, ...this.#subscribe(ms + 20)]
  }

  #subscribe(ms: number): ScriptRecord[] {
    this.#sid++
    this.#seq = 0
    if (this.#source === 'polymarket')
      return [
        this.#record(
          ms,
          this.#markets.map((market) => this.#book(market, ms)),
        ),
      ]
    const command = {
      id: this.#sid,
      cmd: 'subscribe',
      params: { channels: ['orderbook_delta'], use_yes_price: true },
    }
    const answer = { id: this.#sid, type: 'subscribed', msg: { channel: 'orderbook_delta', sid: this.#sid } }
    return [
      this.#record(ms, command, WAL_KIND.command),
      this.#record(ms + 5, answer),
      ...this.#markets.map((market) => this.#record(ms + 6, this.#book(market, ms))),
    ]
  }

  /** One step: a message, a fault, or only an alive mark. */
  step(ms: number, clockMs: number): ScriptRecord[] {
    if (!this.isOpen) return this.#random.chance(0.3) ? this.open(ms) : []
    const chance = this.#random.int(0, 100)
    if (chance < 1) return this.close(ms)
    if (chance < 2) this.#seq++
    if (chance < 3) return this.#subscribe(ms)
    if (chance < 5) return [this.#record(ms, this.#book(this.#random.pick(this.#markets), ms - clockMs))]
    if (chance < 6) return [this.#record(ms, 'no JSON {')]
    if (chance < 60) return [this.#record(ms, this.#change(ms - clockMs - this.#random.int(0, 200)))]
    return this.alive(ms)
  }

  alive(ms: number): ScriptRecord[] {
    if (!this.isOpen || ms < this.#saidMs + 10_000) return []
    return [this.#record(ms, aliveMark(ms - 1000), WAL_KIND.mark)]
  }

  close(ms: number): ScriptRecord[] {
    if (!this.isOpen) return []
    this.isOpen = false
    return [
      this.#record(ms, aliveMark(ms - this.#random.int(0, 25_000)), WAL_KIND.mark),
      this.#record(ms, closeMark(), WAL_KIND.mark),
    ]
  }

  #book(market: number, ms: number): object {
    const qty = `${1 + this.#random.int(1, 50)}.00`
    if (this.#source === 'kalshi')
      return {
        ...snapshot(++this.#seq, { market_ticker: MARKETS[market], yes_dollars_fp: [['0.4000', qty]] }),
        sid: this.#sid,
      }
    const place = {
      market: CONDITION,
      asset_id: TOKENS[market],
      timestamp: String(ms - this.#random.int(0, 3000)),
    }
    return { event_type: 'book', ...place, bids: [{ price: '0.4', size: qty }], asks: [] }
  }

  #change(ms: number): object {
    const market = this.#random.pick(this.#markets)
    const cents = 10 + this.#random.int(0, 30)
    if (this.#source === 'kalshi') {
      const content = {
        market_ticker: MARKETS[market],
        price_dollars: `0.${cents}00`,
        delta_fp: '2.00',
        side: 'yes',
        ts_ms: ms,
      }
      return { ...delta(++this.#seq, content), sid: this.#sid }
    }
    const change = {
      asset_id: TOKENS[market],
      price: `0.${cents}`,
      size: `${1 + this.#random.int(0, 90)}`,
      side: 'BUY',
    }
    return { event_type: 'price_change', market: CONDITION, timestamp: String(ms), price_changes: [change] }
  }

  #record(ms: number, frame: unknown, kind: ScriptRecord['kind'] = WAL_KIND.frame): ScriptRecord {
    this.#saidMs = ms
    return { kind, lane: this.#number, begunMs: this.#begunMs, ms, frame }
  }
}

/** A few hours around midnight of a recorder with two lanes. */
function script(source: LobSource, random: SeededRandom): ScriptRecord[] {
  const startMs = Date.parse('2026-06-24T21:40:00Z') + random.int(0, 60 * MINUTE_MS)
  const endMs = Date.parse('2026-06-25T02:30:00Z')
  const clockMs = random.chance(0.4) ? 0 : random.int(-118_000, 118_000)
  const series = {
    kind: WAL_KIND.series,
    ms: startMs,
    frame: Object.fromEntries(TOKENS.map((id) => [`${CONDITION}:${id}`, 'temps'])),
  }
  let lanes = lanesOf(source, random)
  const records: ScriptRecord[] = [{ kind: WAL_KIND.start, ms: startMs }, series]
  for (let ms = startMs + 100; ms < endMs; ms += random.int(500, 9_000)) {
    const isNearHour = HOUR_MS - (ms % HOUR_MS) < MINUTE_MS
    if (random.chance(isNearHour ? 0.03 : 0.001)) {
      const isShort = random.chance(0.5)
      const fromMs = ms
      ms += isShort ? random.int(500, MINUTE_MS) : random.int(MINUTE_MS, 90 * MINUTE_MS)
      // A network outage: the recorder closes the connections, or continues without a line.
      if (random.chance(0.5)) for (const lane of lanes) records.push(...lane.close(fromMs))
      if (random.chance(0.3))
        for (let clock = fromMs + 1000; clock < ms; clock += 1000)
          records.push({ kind: WAL_KIND.clock, ms: clock })
      // The machine slept, or the process was killed and another one started.
      if (isShort || random.chance(0.5)) {
        if (random.chance(0.2)) ms -= random.int(1000, 3 * MINUTE_MS)
        records.push({ kind: WAL_KIND.start, ms }, { ...series, ms })
        lanes = lanesOf(source, random)
        // The exchange may be unavailable.
        if (random.chance(0.3)) {
          ms += MINUTE_MS
          records.push({ kind: WAL_KIND.mark, begunMs: 0, ms, frame: closeMark() })
          for (const backMs = ms + random.int(0, 90 * MINUTE_MS); ms < backMs; ms += 30_000)
            records.push({ kind: WAL_KIND.clock, ms })
        }
      }
    }
    records.push(...random.pick(lanes).step(ms, clockMs))
    for (const lane of lanes) records.push(...lane.alive(ms + 50))
    records.push({ kind: WAL_KIND.clock, ms: ms + 100 })
  }
  const lastMs = Math.max(endMs, records.at(-1)!.ms + 1000)
  for (const lane of lanes) if (!lane.isOpen) records.push(...lane.open(lastMs))
  for (const lane of lanes) records.push(...lane.close(lastMs + 1000))
  for (let ms = lastMs + 2000; ms < Date.parse('2026-06-26T00:01:00Z'); ms += 30_000)
    records.push({ kind: WAL_KIND.clock, ms })
  return records
}

function lanesOf(source: LobSource, random: SeededRandom): Lane[] {
  return [new Lane(source, random, 0, [0, 1]), new Lane(source, random, 1, [2])]
}

for (const source of ['kalshi', 'polymarket'] as const) {
  test(`${source}: recorded files have the bytes that a fold of their segments gives`, async (t) => {
    const root = await temporaryDirectory(t)
    const seeds = ONLY === undefined ? Array.from({ length: SEEDS }, (_, index) => index + 1) : [Number(ONLY)]
    for (const seed of seeds) {
      const random = new SeededRandom(seed)
      const [lake, work] = [join(root, `lake-${seed}`), join(root, `work-${seed}`)]
      const limit = await writeWal(work, source, script(source, random), { segmentBytes: 200_000 })
      const bounds = { portionRows: 30, spillBytes: 4000, groupRows: 50 }
      // The fold of a past date would replace the files that are compared.
      const folding: Folding = async () => ({ files: [], trades: [], tally: new FoldTally(), days: [] })
      const options = { lake, source, workDirectory: work, bounds, folding }
      let fold = await LiveFold.open(options)
      while (await fold.advance(limit)) {
        if (random.chance(0.3)) await fold.publish()
        if (!random.chance(0.1)) continue
        await fold.close()
        fold = await LiveFold.open(options)
      }
      await fold.close()
      const other = await refold(lake, join(root, `other-${seed}`), source, { groupRows: 50 })
      const paths = await parquetFilesBelow(lobSourceDirectory(lake, source))
      assert.deepEqual(paths, await parquetFilesBelow(lobSourceDirectory(other, source)), `seed ${seed}`)
      assert.ok(paths.length > 0)
      for (const path of paths) {
        const [mine, theirs] = [
          join(lobSourceDirectory(lake, source), path),
          join(lobSourceDirectory(other, source), path),
        ]
        assert.ok((await readFile(mine)).equals(await readFile(theirs)), `seed ${seed}: ${path}`)
      }
      if (ONLY === undefined) for (const place of [lake, work, other]) await rm(place, { recursive: true })
      else t.diagnostic(root)
    }
  })
}
