// What a recorder publishes of a date is what a fold of its raw segments gives, byte for byte: over midnight, with several
// connections, restarts, pauses, networks that are away, lost messages and a clock that is off.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Folding } from '../../server/fold/fold-order.ts'
import { FoldTally } from '../../server/fold/fold-tally.ts'
import { aliveMark, closeMark, openMark } from '../../server/feed/wal-mark.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { lobSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { UNKNOWN, textAt } from '../import/pieces/book-steps.ts'
import { readLake } from '../import/pieces/lake-reader.ts'
import { SeededRandom } from '../import/pieces/seeded-random.ts'
import { runs } from '../support/effort.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { refold } from '../support/refolded-lake.ts'
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

/** What one lane hears and says while it is connected. */
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

  /** One step: a message, a fault, or nothing but a sign of life. */
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

/** Some hours around midnight of a recorder with two lanes. */
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
      // The network is away: the recorder gives up the connections, or goes on without a line.
      if (random.chance(0.5)) for (const lane of lanes) records.push(...lane.close(fromMs))
      if (random.chance(0.3))
        for (let clock = fromMs + 1000; clock < ms; clock += 1000)
          records.push({ kind: WAL_KIND.clock, ms: clock })
      // The machine slept, or the process was killed and another one starts.
      if (isShort || random.chance(0.5)) {
        if (random.chance(0.2)) ms -= random.int(1000, 3 * MINUTE_MS)
        records.push({ kind: WAL_KIND.start, ms }, { ...series, ms })
        lanes = lanesOf(source, random)
        // The exchange may be away.
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
      // The fold of a date that is over would replace what is compared.
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
      const paths = await filesOf(lobSourceDirectory(lake, source))
      assert.deepEqual(paths, await filesOf(lobSourceDirectory(other, source)), `seed ${seed}`)
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

test('the books of a killed process are unknown from its last message on, also where its hour ends before the next one starts', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const hourMs = Date.parse('2026-06-24T13:00:00Z')
  const after = (seconds: number): number => hourMs + seconds * 1000
  const series = { kind: WAL_KIND.series, frame: {} }
  const connected = (ms: number, begunMs: number): ScriptRecord[] => [
    { kind: WAL_KIND.mark, ms, begunMs, frame: openMark() },
    { ms: ms + 1, begunMs, frame: snapshot(1, { market_ticker: MARKETS[0], yes: [[40, 9]] }) },
    {
      ms: ms + 5_000,
      begunMs,
      frame: delta(2, { market_ticker: MARKETS[0], ts_ms: ms + 5_000 }),
    },
  ]
  const limit = await writeWal(work, 'kalshi', [
    { kind: WAL_KIND.start, ms: after(-60) },
    { ...series, ms: after(-60) },
    ...connected(after(-15), 1),
    // The last message comes 10 s before the hour ends.
    { kind: WAL_KIND.clock, ms: after(16) },
    { kind: WAL_KIND.start, ms: after(20) },
    { ...series, ms: after(20) },
    ...connected(after(21), 2),
    { kind: WAL_KIND.clock, ms: after(30) },
  ])
  const fold = await LiveFold.open({ lake, source: 'kalshi', workDirectory: work })
  while (await fold.advance(limit));
  await fold.publish()
  await fold.close()
  const steps = (await readLake(lake)).steps.get(MARKETS[0])!
  const bookAt = (seconds: number) => textAt(steps, BigInt(after(seconds)) * 1_000_000n)
  assert.notEqual(bookAt(-10), UNKNOWN)
  for (const seconds of [-9.9, -0.1, 0, 10, 20]) assert.equal(bookAt(seconds), UNKNOWN, `${seconds} s`)
  assert.notEqual(bookAt(22), UNKNOWN)
})

test('the books of a silent connection are unknown from its last message on, also where its hour ends before it is given up', async (t) => {
  const root = await temporaryDirectory(t)
  const hourMs = Date.parse('2026-06-24T13:00:00Z')
  const place = { kind: WAL_KIND.mark, begunMs: 1 }
  const after = (seconds: number): number => hourMs + seconds * 1000
  const { lake } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-60) },
    { kind: WAL_KIND.series, ms: after(-60), frame: {} },
    { ...place, ms: after(-50), frame: openMark() },
    { ms: after(-49), frame: snapshot(1, { market_ticker: MARKETS[0], yes: [[40, 9]] }) },
    { ms: after(-12), frame: delta(2, { market_ticker: MARKETS[0], ts_ms: after(-12) }) },
    { ...place, ms: after(16), frame: aliveMark(after(-10)) },
    { ...place, ms: after(16), frame: closeMark() },
    { kind: WAL_KIND.clock, ms: after(17) },
  ])
  const steps = (await readLake(lake)).steps.get(MARKETS[0])!
  const bookAt = (seconds: number) => textAt(steps, BigInt(after(seconds)) * 1_000_000n)
  assert.notEqual(bookAt(-11), UNKNOWN)
  for (const seconds of [-9.9, -0.1, 0, 10]) assert.equal(bookAt(seconds), UNKNOWN, `${seconds} s`)
})

test('a process that starts with the clock put back into a closed hour records for the next one', async (t) => {
  const root = await temporaryDirectory(t)
  const hourMs = Date.parse('2026-06-24T13:00:00Z')
  const after = (seconds: number): number => hourMs + seconds * 1000
  const connected = (seconds: number, begunMs: number): ScriptRecord[] => [
    { kind: WAL_KIND.mark, begunMs, ms: after(seconds), frame: openMark() },
    { begunMs, ms: after(seconds + 1), frame: snapshot(1, { market_ticker: MARKETS[0], yes: [[40, 9]] }) },
    {
      begunMs,
      ms: after(seconds + 2),
      frame: delta(2, { market_ticker: MARKETS[0], ts_ms: after(seconds + 2) }),
    },
  ]
  const { lake, other } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-60) },
    { kind: WAL_KIND.series, ms: after(-60), frame: {} },
    ...connected(-50, 1),
    { kind: WAL_KIND.mark, begunMs: 1, ms: after(-20), frame: closeMark() },
    { kind: WAL_KIND.clock, ms: after(20) },
    { kind: WAL_KIND.start, ms: after(-8) },
    ...connected(-7, 2),
    { kind: WAL_KIND.mark, begunMs: 2, ms: after(25), frame: aliveMark(after(24)) },
    { kind: WAL_KIND.clock, ms: after(26) },
  ])
  const [mine, theirs] = [await readLake(lake), await readLake(other)]
  assert.deepEqual(mine, theirs)
  const steps = mine.steps.get(MARKETS[0])!
  assert.notEqual(textAt(steps, BigInt(after(10)) * 1_000_000n), UNKNOWN)
})

/** What a connection begins with: a book, and a change at the exchange's time. */
function begins(ms: number, begunMs: number, changeMs = ms + 2_000): ScriptRecord[] {
  return [
    { kind: WAL_KIND.mark, begunMs, ms, frame: openMark() },
    { begunMs, ms: ms + 1_000, frame: snapshot(1, { market_ticker: MARKETS[0], yes: [[40, 9]] }) },
    { begunMs, ms: ms + 2_000, frame: delta(2, { market_ticker: MARKETS[0], ts_ms: changeMs }) },
  ]
}

test('a recorder whose clock is behind, restarted before it shows the end of the hour, keeps what it recorded of the next one', async (t) => {
  const root = await temporaryDirectory(t)
  const hourMs = Date.parse('2026-06-24T13:00:00Z')
  const after = (seconds: number): number => hourMs + seconds * 1000
  const { lake, other } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-120) },
    { kind: WAL_KIND.series, ms: after(-120), frame: {} },
    ...begins(after(-38), 1, after(2)),
    { kind: WAL_KIND.start, ms: after(-30) },
    ...begins(after(-29), 2, after(11)),
    { kind: WAL_KIND.mark, begunMs: 2, ms: after(25), frame: aliveMark(after(24)) },
    { kind: WAL_KIND.clock, ms: after(26) },
  ])
  const [mine, theirs] = [await readLake(lake), await readLake(other)]
  assert.deepEqual(mine, theirs)
  assert.notEqual(textAt(theirs.steps.get(MARKETS[0])!, BigInt(after(2)) * 1_000_000n), UNKNOWN)
})

test('a connection of a recorder whose clock is far behind goes on after midnight', async (t) => {
  const root = await temporaryDirectory(t)
  const midnightMs = Date.parse('2026-06-25T00:00:00Z')
  const after = (seconds: number): number => midnightMs + seconds * 1000
  const { lake, other } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-120) },
    { kind: WAL_KIND.series, ms: after(-120), frame: {} },
    // The first message with a time shows that it is past midnight.
    ...begins(after(-98), 1, after(4)),
    { ms: after(-82), frame: delta(3, { market_ticker: MARKETS[0], ts_ms: after(20) }) },
    { kind: WAL_KIND.mark, begunMs: 1, ms: after(-80), frame: aliveMark(after(-81)) },
    { kind: WAL_KIND.clock, ms: after(-79) },
  ])
  const [mine, theirs] = [await readLake(lake), await readLake(other)]
  assert.deepEqual(mine, theirs)
  assert.notEqual(textAt(theirs.steps.get(MARKETS[0])!, BigInt(after(1)) * 1_000_000n), UNKNOWN)
})

test('a market that is stated after midnight by a clock that is ahead has its series before midnight, too', async (t) => {
  const root = await temporaryDirectory(t)
  const midnightMs = Date.parse('2026-06-25T00:00:00Z')
  const aheadS = 10
  const after = (seconds: number): number => midnightMs + (seconds + aheadS) * 1000
  const changed = (seq: number, seconds: number): ScriptRecord => {
    const frame = delta(seq, { market_ticker: MARKETS[0], ts_ms: midnightMs + seconds * 1000 })
    return { ms: after(seconds), frame }
  }
  const { lake, other } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-60) },
    { kind: WAL_KIND.series, ms: after(-60), frame: {} },
    { kind: WAL_KIND.mark, begunMs: 1, ms: after(-50), frame: openMark() },
    { ms: after(-49), frame: snapshot(1, { market_ticker: MARKETS[0], yes: [[40, 9]] }) },
    changed(2, -40),
    { kind: WAL_KIND.series, ms: after(-6), frame: { [MARKETS[1]]: 'KXOTHER' } },
    { ms: after(-5), frame: snapshot(3, { market_ticker: MARKETS[1], yes: [[40, 9]] }) },
    changed(4, 8),
    { kind: WAL_KIND.clock, ms: after(9) },
  ])
  const files = await filesOf(join(lake, 'lob'))
  assert.ok(files.includes('source=kalshi/series=KXOTHER/date=2026-06-24/lob.parquet'), String(files))
  assert.deepEqual(await filesOf(join(other, 'lob')), files)
})

test('a date that a recorder whose clock is behind has reached by the times of the exchange alone states the series of its markets', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const midnightMs = Date.parse('2026-06-25T00:00:00Z')
  const after = (seconds: number): number => midnightMs + seconds * 1000
  const id = `${CONDITION}:${TOKENS[0]}`
  const series = { kind: WAL_KIND.series, frame: { [id]: 'temps' } }
  const place = { market: CONDITION, asset_id: TOKENS[0] }
  const book = (ms: number) => [{ event_type: 'book', ...place, timestamp: `${ms}`, bids: [], asks: [] }]
  const change = (ms: number) => ({
    event_type: 'price_change',
    market: CONDITION,
    timestamp: `${ms}`,
    price_changes: [{ asset_id: TOKENS[0], price: '0.4', size: '7', side: 'BUY' }],
  })
  const limit = await writeWal(work, 'polymarket', [
    { kind: WAL_KIND.start, ms: after(-120) },
    { ...series, ms: after(-120) },
    { kind: WAL_KIND.mark, ms: after(-110), frame: openMark() },
    { ms: after(-109), frame: book(after(-9)) },
    { ms: after(-108), frame: change(after(-8)) },
    // It is killed before its own clock reaches the date, and starts again after the first hour of the date.
    { ms: after(-70), frame: change(after(30)) },
    { kind: WAL_KIND.start, ms: after(7000) },
    { ...series, ms: after(7000) },
    { kind: WAL_KIND.mark, begunMs: 2, ms: after(7001), frame: openMark() },
    { begunMs: 2, ms: after(7002), frame: book(after(7001)) },
  ])
  const fold = await LiveFold.open({ lake, source: 'polymarket', workDirectory: work })
  while (await fold.advance(limit));
  await fold.close()
  await rm(join(lake, 'raw', 'source=polymarket', 'date=2026-06-24'), { recursive: true })
  const other = await refold(lake, join(root, 'other'), 'polymarket')
  const paths = await filesOf(lobSourceDirectory(other, 'polymarket'))
  assert.deepEqual(paths, ['series=temps/date=2026-06-25/lob.parquet'])
})

/** The lake of a recorder of Kalshi with this log, and a lake folded from its segments. */
async function recorded(
  root: string,
  records: readonly ScriptRecord[],
): Promise<{ readonly lake: string; readonly other: string }> {
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const limit = await writeWal(work, 'kalshi', records)
  const fold = await LiveFold.open({ lake, source: 'kalshi', workDirectory: work })
  while (await fold.advance(limit));
  await fold.publish()
  await fold.close()
  return { lake, other: await refold(lake, join(root, 'other'), 'kalshi') }
}

async function filesOf(directory: string): Promise<string[]> {
  if (!existsSync(directory)) return []
  const names = await readdir(directory, { recursive: true })
  return names.filter((name) => name.endsWith('.parquet')).toSorted()
}
