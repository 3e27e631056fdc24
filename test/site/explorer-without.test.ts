// The explorer with an incomplete server: no store, an unavailable store, no order books, a connection that ends. It shows
// available data and reports what is missing.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { sha256Hex } from '../../server/http/api-keys.ts'
import { browserOfThisFile, withoutChromium } from '../support/chromium.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'
import { codeIn, leaveExplorer, openExplorer, tableCells, wholeRows } from '../support/explorer-page.ts'
import { MemoryStore, seriesRow } from '../support/memory-store.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { startTestServer } from '../support/test-server.ts'

const MARKET = 'series=KXHIGHNY&event=KXHIGHNY-26JUL02&market=KXHIGHNY-26JUL02-B80.5&date=2026-07-02'
const LONG_BYTES = 120_000
const EMPTY_LAKE = 'The lake has no order books yet'

/** With the sample's records, but without its order books. */
const file = serviceOfThisFile({ prepare: (lake) => rm(join(lake, 'lob'), { recursive: true }) })
const chromium = browserOfThisFile()
const skip = withoutChromium

async function goTo(page: Page, view: string): Promise<void> {
  await page.getByRole('link', { name: view, exact: true }).click()
}

/** Counts the requests of a page whose path is one. */
function countRequests(page: Page, path: string): { readonly count: number } {
  const found = { count: 0 }
  page.on('request', (request) => {
    if (new URL(request.url()).pathname === path) found.count += 1
  })
  return found
}

test(
  'without a store the order books are shown, and the views that need a store say so',
  { skip },
  async (t) => {
    const { url } = await startTestServer(t, { lake: SAMPLE_LAKE }, { worker: 'real' })
    const { page } = await openExplorer(chromium.browser, url)
    const asked = countRequests(page, '/api/v1/series')
    assert.equal(await wholeRows(page), 6 * 1440)
    assert.match(page.url(), /series=KXHIGHCHI&event=KXHIGHCHI-26JUL03&/)
    await goTo(page, 'Book')
    await page.locator('.plot-area').waitFor()
    assert.equal(await wholeRows(page), 1440)
    // One request for each view, without waiting.
    assert.ok(asked.count <= 2, String(asked.count))
    await goTo(page, 'Candles')
    const refusal = page.getByRole('alert')
    await refusal.waitFor()
    assert.match(await refusal.innerText(), /\/api\/v1\/candles/)
    await goTo(page, 'Data')
    await page.getByText('Asked at').waitFor()
    const stores = new Map((await tableCells(page, 'Stores and sync')).map(([name, state]) => [name, state]))
    assert.equal(stores.get('Parquet files'), '15')
    await leaveExplorer(page)
  },
)

test(
  'while the store is unavailable the order books are shown, and the names once it is back',
  { skip },
  async (t) => {
    const title = 'Highest temperature of KXHIGHCHI'
    const store = new MemoryStore([seriesRow('KXHIGHCHI', { title })])
    store.isAway = true
    const { url } = await startSampleServer(t, {}, store)
    const { page } = await openExplorer(chromium.browser, url)
    assert.equal(await wholeRows(page), 6 * 1440)
    const series = page.getByRole('combobox', { name: 'Series', exact: true })
    const named = series.locator('option', { hasText: title })
    assert.equal(await named.count(), 0)
    await goTo(page, 'Data')
    await page.getByText('Asked at').waitFor()
    const stores = new Map((await tableCells(page, 'Stores and sync')).map(([name, state]) => [name, state]))
    assert.equal(stores.get('Relational database'), 'error')
    store.isAway = false
    while ((await fetch(`${url}/api/v1/series`)).status === 503) await page.waitForTimeout(100)
    await goTo(page, 'Book')
    await named.waitFor({ state: 'attached' })
    assert.equal(await wholeRows(page), 1440)
    await leaveExplorer(page)
  },
)

test('without order books weather and candles of any day are shown', { skip }, async () => {
  for (const view of ['day', 'book']) {
    const { page, faults } = await openExplorer(chromium.browser, file.service.url, `#view=${view}`)
    await page.getByText(EMPTY_LAKE).waitFor()
    assert.ok(await page.getByRole('alert').isHidden())
    await page.getByRole('button', { name: 'Show the weather instead' }).click()
    await page.getByRole('heading', { name: /^Temperature at / }).waitFor()
    assert.deepEqual(
      faults.filter((fault) => !fault.startsWith('Failed to load resource')),
      [],
    )
    await leaveExplorer(page)
  }
  const { page } = await openExplorer(
    chromium.browser,
    file.service.url,
    '#view=weather&series=KXHIGHNY&event=all&date=2026-07-02',
  )
  assert.ok((await wholeRows(page)) > 10)
  const observed = await tableCells(page, 'Temperature, °F')
  // Any day can be chosen where none has a recording.
  await page.getByRole('button', { name: '2026-07-02', exact: true }).click()
  assert.equal(await page.locator('.calendar td button:enabled').count(), 31)
  await page.getByRole('button', { name: '2026-07-01', exact: true }).click()
  await page.getByRole('heading', { name: /climate day 2026-07-01$/ }).waitFor()
  assert.ok((await wholeRows(page)) > 10)
  assert.notDeepEqual(await tableCells(page, 'Temperature, °F'), observed)
  await page.getByRole('button', { name: 'after' }).click()
  await page.getByRole('heading', { name: /climate day 2026-07-02$/ }).waitFor()
  await goTo(page, 'Candles')
  await page.locator('caption', { hasText: 'Candles' }).waitFor({ state: 'attached' })
  assert.ok((await wholeRows(page)) > 0)
  await leaveExplorer(page)
})

test('with an empty lake the page names the commands that add data', { skip }, async (t) => {
  const { url } = await startSampleServer(t, { lake: file.service.lake }, new MemoryStore())
  for (const view of ['day', 'book', 'weather', 'candles']) {
    const { page, faults } = await openExplorer(chromium.browser, url, `#view=${view}`)
    await page.getByText(EMPTY_LAKE).waitFor()
    assert.equal(await page.locator('.missing button').count(), 0)
    assert.ok(await page.getByRole('alert').isHidden())
    assert.deepEqual(faults, [])
    await leaveExplorer(page)
  }
})

test('the page asks again for a key that cannot be sent', { skip }, async (t) => {
  const key = 'a-key-of-enough-characters'
  const { url } = await startSampleServer(t, { apiKeys: [{ name: 'charts', sha256: sha256Hex(key) }] })
  const { page } = await openExplorer(chromium.browser, url)
  const input = page.locator('.key-form input')
  await input.fill('ключ')
  await page.keyboard.press('Enter')
  await page.getByText('An API key has only characters of ASCII').waitFor()
  await input.fill(key)
  await page.keyboard.press('Enter')
  assert.ok((await wholeRows(page)) > 1000)
  assert.ok(!(await codeIn(page, 'curl')).includes(key))
  await page.close()
})

/** A server that disappears after half a megabyte of the long response; `accept` brings it back. */
async function dyingServer(
  t: TestContext,
  port: number,
): Promise<{ url: string; accept: () => Promise<void> }> {
  const sockets = new Set<Socket>()
  let isDying = true
  const server = createServer((socket) => {
    const upstream = connect(port, '127.0.0.1')
    let passed = Number.NEGATIVE_INFINITY
    for (const each of [socket, upstream]) {
      sockets.add(each)
      each.on('error', () => {}).on('close', () => [socket, upstream].forEach((one) => one.destroy()))
    }
    socket.on('data', (bytes) => {
      if (isDying && bytes.includes('interval=1&')) passed = 0
    })
    upstream.on('data', (bytes) => {
      passed += bytes.length
      if (passed < LONG_BYTES || !isDying) return
      isDying = false
      server.close()
      // Received bytes are passed on first.
      setImmediate(() => sockets.forEach((each) => each.destroySoon()))
    })
    socket.pipe(upstream).pipe(socket)
  })
  const listen = async (at: number): Promise<number> => {
    await once(server.listen(at, '127.0.0.1'), 'listening')
    return (server.address() as AddressInfo).port
  }
  const place = await listen(0)
  t.after(() => {
    server.close()
    for (const each of sockets) each.destroy()
  })
  return { url: `http://127.0.0.1:${place}`, accept: async () => void (await listen(place)) }
}

test(
  'a response whose server disappears is reported, received rows stay, and the next view is correct',
  { skip },
  async (t) => {
    const { server } = await startSampleServer(t)
    const { url, accept } = await dyingServer(t, server.port)
    const { page } = await openExplorer(chromium.browser, url, `#view=book&${MARKET}&interval=1`)
    const told = page.getByRole('alert')
    await told.waitFor()
    assert.match(await told.innerText(), /^The answer is not whole: .* after \d+ rows, \d+ bytes\.$/)
    const rows = Number(
      (await page.locator('#request .status').innerText()).split(' ')[0]?.replaceAll(',', ''),
    )
    assert.ok(rows > 0 && rows < 86_400, String(rows))
    await page.getByText(`table of ${rows.toLocaleString('en-GB')} rows`).waitFor()
    assert.ok(await page.getByRole('button', { name: 'Stop' }).isHidden())
    await goTo(page, 'Day')
    await page.getByText('cannot be reached').waitFor()
    await accept()
    await goTo(page, 'Day')
    assert.equal(await wholeRows(page), 6 * 1440)
    assert.ok(await told.isHidden())
    await leaveExplorer(page)
  },
)
