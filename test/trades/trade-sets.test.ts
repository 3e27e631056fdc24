// Trades files depend on the set of trade messages alone, wherever they come from and in whatever order they are added.

import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { TRADES_SOURCES } from '../../server/ingest/exchange/trades-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { tradesSourceDirectory } from '../../shared/lake-layout.ts'
import { runs } from '../support/effort.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { backfill, seedMarkets, startTradeExchange } from './trade-exchange.ts'
import { runImport } from '../support/import-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { DATE, foldAll, randomOf, randomTrades, recordTrades, recordingOf } from './random-trades.ts'
import type { TrueTrade } from './random-trades.ts'
import { readTrades } from './trade-rows.ts'

const file = storeOfThisFile()

async function filesOf(lake: string, source: LobSource): Promise<Map<string, string>> {
  const root = tradesSourceDirectory(lake, source)
  const names = await readdir(root, { recursive: true }).catch(() => [])
  const files = new Map<string, string>()
  for (const name of names)
    if (name.endsWith('.parquet')) files.set(name, (await readFile(join(root, name))).toString('base64'))
  return new Map([...files].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** The fields that all origins must agree on. */
function factsOf(trades: readonly TrueTrade[], source: LobSource): string[] {
  const counts = new Map<string, number>()
  return trades
    .map(({ us, market, id, price, hundredths, isBid }) => {
      const terms = `${market} ${price} ${hundredths * 10_000} ${isBid ? 'bid' : 'ask'} ${us / 1_000_000n}`
      if (source === 'kalshi') return `${id} ${terms}`
      const key = `${id} ${terms}`
      const ordinal = counts.get(key) ?? 0
      counts.set(key, ordinal + 1)
      return `0x${id}:${market.split(':')[1]}:${ordinal} ${terms}`
    })
    .toSorted()
}

async function factsIn(lake: string, source: LobSource): Promise<string[]> {
  const rows = await readTrades(lake, source)
  return rows
    .map(
      ({ tradeId, marketId, price, qty, aggressor, ts }) =>
        `${tradeId} ${marketId} ${price} ${qty} ${aggressor} ${ts / 1_000_000_000n}`,
    )
    .toSorted()
}

for (const source of TRADES_SOURCES) {
  test(`${source}: WebSocket, REST and import alone give the same trades`, async (t) => {
    const root = await temporaryDirectory(t)
    const exchange = await startTradeExchange(t)
    for (let seed = 1; seed <= runs(2, 100); seed++) {
      const trades = randomTrades(source, seed, 40)
      const truth = factsOf(trades, source)
      const [ws, rest, imported] = ['ws', 'rest', 'import'].map((name) => join(root, `${seed}-${name}`))
      await recordTrades(ws!, source, trades)
      await foldAll(ws!, source)
      await seedMarkets(rest!, source, file.store.postgres)
      exchange.trades = trades
      await backfill(exchange, rest!, source, file.store.postgres, randomOf(seed))
      await runImport(imported!, source, { lines: recordingOf(source, trades, source === 'kalshi') })
      for (const lake of [ws!, rest!, imported!])
        assert.deepEqual(await factsIn(lake, source), truth, `seed ${seed}: ${lake}`)
    }
  })

  test(`${source}: any mixture of the three in any order gives the same bytes`, async (t) => {
    const root = await temporaryDirectory(t)
    const exchange = await startTradeExchange(t)
    for (let seed = 1; seed <= runs(1, 100); seed++) {
      const random = randomOf(seed)
      const trades = randomTrades(source, 1000 + seed, 30)
      // The recorders have gaps and share lines, and the recordings overlap.
      const transactions = [...new Set(trades.map(({ id }) => id))]
      const some = (share: number): TrueTrade[] => {
        const kept = new Set(transactions.filter(() => random() < share))
        return trades.filter(({ id }) => kept.has(id))
      }
      const parts: ((lake: string) => Promise<unknown>)[] = []
      for (const recorder of ['rec1', 'rec2']) {
        const heard = some(0.6)
        const cut = Math.floor(random() * heard.length)
        const slice = (from: number, to: number) => async (lake: string) =>
          await recordTrades(lake, source, heard.slice(from, to), { recorder, numberOf: (n) => n + from })
        parts.push(slice(0, cut), slice(cut, heard.length), slice(0, heard.length))
      }
      for (const share of [0.5, 0.3]) {
        const fetched = some(share)
        parts.push(async (lake) => {
          exchange.trades = fetched
          await backfill(exchange, lake, source, file.store.postgres, random)
        })
      }
      const lines = recordingOf(source, some(0.5), true)
      if (lines.length > 0) parts.push(async (lake) => await runImport(lake, source, { lines }))
      const lakes = [join(root, `${seed}-a`), join(root, `${seed}-b`)]
      for (const [index, lake] of lakes.entries()) {
        await seedMarkets(lake, source, file.store.postgres)
        const ordered = index === 0 ? parts : parts.toSorted(() => random() - 0.5)
        for (const part of ordered) {
          await part(lake)
          if (random() < 0.3) await foldAll(lake, source)
        }
        await foldAll(lake, source)
      }
      const [a, b] = [await filesOf(lakes[0]!, source), await filesOf(lakes[1]!, source)]
      assert.ok(a.size > 0 && [...a.keys()].every((name) => name.includes(`date=${DATE}`)))
      assert.deepEqual(b, a, `seed ${seed}`)
    }
  })
}
