import assert from 'node:assert/strict'
import { beforeEach, test, type TestContext } from 'node:test'
import { backfillSource } from '../../server/ingest/run-source.ts'
import { missingWindows, type TimeWindow } from '../../server/storage/cursor-store.ts'
import { migrate, readMigrations } from '../../server/storage/migrations.ts'
import { checkClimateReports } from '../../server/verify/climate-check.ts'
import { repairScope } from '../../server/verify/repair.ts'
import { productText, wrapped } from '../support/climate-text.ts'
import { send } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { startWorld, type UpstreamWorld, worldContext, worldSource } from '../support/upstream-world.ts'

const file = storeOfThisFile()
const CURSOR = { source: 'climate-afos', scope: 'MIA' } as const
/** Three climate dates: 26, 27 and 28 August. */
const SPAN: TimeWindow = { fromMs: Date.parse('2026-08-26'), toMs: Date.parse('2026-08-29') }
const DUE_MS = Date.parse('2026-08-29T18:00:00Z')

beforeEach(async () => {
  await file.store.migrate()
  await command('TRUNCATE climate_records, ingest_cursors')
})

function command<Row>(text: string): Promise<readonly Row[]> {
  return file.store.postgres.run<Row>({ text, parameters: [] })
}

/** The preliminary report of a date in August, 87 °F, and the final one of the next morning, 90 °F. */
function reportsOf(day: number): readonly { readonly issuedMs: number; readonly text: string }[] {
  const preliminary = productText({
    header: `CDUS42 KMFL ${day}2030`,
    issued: `430 PM EDT SOMEDAY AUG ${day} 2026`,
    summaries: [
      {
        name: 'MIAMI',
        date: `AUGUST ${day} 2026`,
        validAsOf: 'VALID TODAY AS OF 0400 PM LOCAL TIME.',
        label: 'TODAY',
        maximum: '         87   3:25 PM  95    1952  90      0       93        ',
      },
    ],
  })
  const final = productText({
    header: `CDUS42 KMFL ${day + 1}0824`,
    issued: `424 AM EDT SOMEDAY AUG ${day + 1} 2026`,
    summaries: [{ name: 'MIAMI', date: `AUGUST ${day} 2026` }],
  })
  return [
    { issuedMs: Date.UTC(2026, 7, day, 20, 30), text: preliminary },
    { issuedMs: Date.UTC(2026, 7, day + 1, 8, 24), text: final },
  ]
}

interface Archive {
  nowMs: number
  /** Dates of August without a final report. */
  readonly withoutFinal: Set<number>
  /** Returns the number of requests. */
  backfill(span?: TimeWindow): Promise<number>
}

async function startArchive(t: TestContext): Promise<Archive> {
  const world: UpstreamWorld = await startWorld(t)
  const withoutFinal = new Set<number>()
  const archive = { nowMs: DUE_MS, withoutFinal }
  world.fault = ({ url }) => {
    const query = new URL(url, 'http://local').searchParams
    const pil = query.get('pil') ?? ''
    const [fromMs, toMs] = [Date.parse(query.get('sdate') ?? ''), Date.parse(query.get('edate') ?? '')]
    const products = [25, 26, 27, 28, 29]
      .flatMap((day) => reportsOf(day).slice(0, withoutFinal.has(day) ? 1 : 2))
      .filter(({ issuedMs }) => issuedMs >= fromMs && issuedMs < Math.min(toMs, archive.nowMs))
    if (pil !== 'CLIMIA' || products.length === 0) return send(200, `ERROR: Could not Find: ${pil}`)
    return send(200, wrapped(...products.map(({ text }) => text)))
  }
  return Object.assign(archive, {
    async backfill(span = SPAN) {
      const before = world.asked.length
      const source = worldSource(t, world, 'climate-afos')
      const clock = { nowMs: () => archive.nowMs, sleep: async () => {} }
      const outcome = await backfillSource(source, span, { ...worldContext(file.store.postgres), clock })
      assert.equal(outcome.errorCount, 0)
      return world.asked.length - before
    },
  })
}

function storedHighs(): Promise<readonly string[]> {
  return command<{ readonly text: string }>(
    `SELECT concat_ws(' ', observation_date, report_type, high_temp_f) AS text FROM climate_records
     WHERE observation_date BETWEEN '2026-08-26' AND '2026-08-28' ORDER BY 1`,
  ).then((rows) => rows.map(({ text }) => text))
}

const ALL_REPORTS = ['26', '27', '28'].flatMap((day) => [
  `2026-08-${day} final 90`,
  `2026-08-${day} preliminary 87`,
])

test('a backfill fetches the final report of its last date, which is issued on the next morning', async (t) => {
  const archive = await startArchive(t)
  assert.ok((await archive.backfill()) > 0)
  assert.deepEqual(await storedHighs(), ALL_REPORTS)
  assert.equal(await archive.backfill(), 0)
})

test('a date is complete once it was requested after its final report was due', async (t) => {
  const archive = await startArchive(t)
  archive.nowMs = DUE_MS - 1
  await archive.backfill()
  assert.deepEqual(await missingWindows(file.store.postgres, CURSOR, SPAN, DUE_MS), [
    { fromMs: Date.parse('2026-08-28'), toMs: SPAN.toMs },
  ])
  archive.nowMs = DUE_MS
  assert.ok((await archive.backfill()) > 0)
  assert.deepEqual(await missingWindows(file.store.postgres, CURSOR, SPAN, DUE_MS), [])
})

test('the end of a span that an older version marked complete by time of issue is requested once more', async (t) => {
  const archive = await startArchive(t)
  await command('DROP SCHEMA public CASCADE')
  await command('CREATE SCHEMA public')
  await migrate(file.store.postgres, (await readMigrations()).slice(0, 7))
  // Two spans of issue times: the second lacks the final report of 28 August.
  await command(`INSERT INTO ingest_cursors (source, scope, completed)
    VALUES ('climate-afos', 'MIA', '{[2026-07-01Z,2026-07-04Z),[2026-08-01Z,2026-08-29Z)}')`)
  await file.store.migrate()
  const whole = { fromMs: Date.parse('2026-07-01'), toMs: SPAN.toMs }
  assert.deepEqual(await missingWindows(file.store.postgres, CURSOR, whole, DUE_MS), [
    { fromMs: Date.parse('2026-07-03'), toMs: Date.parse('2026-08-01') },
    { fromMs: Date.parse('2026-08-28'), toMs: SPAN.toMs },
  ])
  assert.ok((await archive.backfill()) > 0)
  assert.ok((await storedHighs()).includes('2026-08-28 final 90'))
  assert.equal(await archive.backfill(), 0)
})

test('an overdue final report is named, and its date can be reopened', async (t) => {
  const archive = await startArchive(t)
  archive.withoutFinal.add(27)
  await archive.backfill()
  const { postgres } = file.store
  const verify = (nowMs: number): ReturnType<typeof checkClimateReports> =>
    checkClimateReports(
      { postgres, lake: null, span: SPAN, nowMs, signal: new AbortController().signal },
      'MIA',
    )
  assert.equal((await verify(DUE_MS - 1)).dayCount, 2)
  const report = await verify(DUE_MS)
  const texts = report.findings.map(({ text }) => text)
  assert.deepEqual(texts, ['2026-08-27: the final climate report is overdue, stored: preliminary'])
  assert.equal(report.dayCount, 3)
  assert.equal(await archive.backfill(), 0)
  assert.equal(await repairScope(postgres, report, ['climate-afos']), 1)
  archive.withoutFinal.delete(27)
  assert.ok((await archive.backfill()) > 0)
  assert.deepEqual((await verify(DUE_MS)).findings, [])
})
