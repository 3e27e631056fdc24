// /api/v1/trades while the fold replaces files that were planned.

import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { stageTradesFile } from '../../server/trades/trades-file.ts'
import { publishTrades } from '../../server/trades/trades-fold.ts'
import { tradesKey } from '../../shared/lake-layout.ts'
import { RECORD_PLAN_ATTEMPTS_MAX, RECORD_STORE_BATCH_ROWS } from '../../shared/limits.ts'
import type { TradeQuery } from '../../shared/record-task.ts'
import { AnswerIdentity } from '../../workers/records/answer-identity.ts'
import { RecordContext } from '../../workers/records/record-context.ts'
import { answerTrades } from '../../workers/records/trades.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const [SERIES, DATE] = ['KXHIGHNY', '2026-07-01']
const FROM_MS = Date.parse(DATE)
const TO_MS = FROM_MS + 86_400_000

async function writePrice(lake: string, price: number): Promise<void> {
  const path = join(lake, tradesKey('kalshi', SERIES, DATE))
  await mkdir(dirname(path), { recursive: true })
  const trade = {
    ts: BigInt(FROM_MS) * 1_000_000n,
    recvTs: null,
    marketId: `${SERIES}-26JUL01-T82`,
    tradeId: 'id',
    price,
    qty: 1_000_000,
    aggressor: 'bid',
    block: null,
    origin: 'rest',
  } as const
  const place = { source: 'kalshi', series: SERIES, date: DATE, rounded: 0 } as const
  publishTrades([{ path, status: 'written', temporary: await stageTradesFile(path, [trade], place) }])
}

/** The price of the answer's only trade, if the file is replaced after each of the first `times` plans. */
async function askWhileReplaced(t: TestContext, times: number, limit: number): Promise<number> {
  const lake = await temporaryDirectory(t)
  await writePrice(lake, 0)
  const context = new RecordContext(lake, null)
  let replaced = 0
  const check = context.checks.checkContract.bind(context.checks)
  context.checks.checkContract = async (...parameters) => {
    await check(...parameters)
    if (replaced < times) await writePrice(lake, ++replaced * 100)
  }
  const query: TradeQuery = {
    kind: 'trades',
    source: 'kalshi',
    market: null,
    event: null,
    series: SERIES,
    format: 'ndjson',
    columns: ['price'],
    limit,
    offset: 0,
    fromMs: FROM_MS,
    toMs: TO_MS,
    fromNs: `${FROM_MS}000000`,
    toNs: `${TO_MS}000000`,
  }
  const { signal } = new AbortController()
  const identity = new AnswerIdentity(query, null)
  const versions = { series: null, manifest: null }
  const run = context.reader(signal)
  const answer = await answerTrades(query, { context, run, signal, identity, versions })
  assert.equal(answer.rows, 1)
  const prices: number[] = []
  for await (const { columns } of answer.batches()) prices.push(...(columns[0] as Float64Array))
  assert.equal(prices.length, 1)
  return prices[0]!
}

for (const [length, limit] of [
  ['short', 10],
  ['long', RECORD_STORE_BATCH_ROWS],
] as const)
  test(`a ${length} page is planned again if a file was replaced after it was planned`, async (t) => {
    assert.equal(await askWhileReplaced(t, 1, limit), 1)
  })

test('a file that is replaced again and again is an error that names it', async (t) => {
  await assert.rejects(askWhileReplaced(t, RECORD_PLAN_ATTEMPTS_MAX, 10), {
    code: 'lake_file_changed',
    message: /trades.*was replaced while it was read/,
  })
})
