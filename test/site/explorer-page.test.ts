// Behaviour of the explorer: URLs, errors, stopping, keyboard, screen readers, colour schemes, narrow screens, hostile names,
// API keys, page weight and requests.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { request as httpRequest } from 'undici'
import { sha256Hex } from '../../server/http/api-keys.ts'
import { writeMarkets } from '../../server/storage/catalogue-store.ts'
import { browserOfThisFile, withoutChromium } from '../support/chromium.ts'
import { marketRecord, serviceOfThisFile } from '../support/conformance-service.ts'
import {
  codeIn,
  leaveExplorer,
  openExplorer,
  pictureOf,
  tableCells,
  wholeRows,
} from '../support/explorer-page.ts'
import { startSampleServer } from '../support/sample-server.ts'
import { readProblem } from '../support/test-server.ts'
import { inFullGear } from '../support/effort.ts'

const WEIGHT_BYTES_MAX = 120_000
/** The page's own weight and a day of minutes of six strikes. */
const FIRST_PICTURE_BYTES_MAX = 150_000
const MARKET = 'series=KXHIGHNY&event=KXHIGHNY-26JUL02&market=KXHIGHNY-26JUL02-B80.5&date=2026-07-02'
const VIEWS = ['day', 'book', 'weather', 'candles', 'data'] as const
const HOSTILE = [
  `KXHIGHNY-26JUL02-<script>document.title='owned'</script>`,
  `KXHIGHNY-26JUL02-"><img src=x onerror=alert(1)>`,
  `KXHIGHNY-26JUL02-'; DROP TABLE markets;--`,
  `KXHIGHNY-26JUL02-\u202Ettfel ot thgir\u05D0\u05D1`,
  `KXHIGHNY-26JUL02-${'x'.repeat(10_000)}`,
] as const

const file = serviceOfThisFile({
  async prepare(_, postgres) {
    const close = { close_time: Date.UTC(2026, 6, 3, 5), event_ticker: 'KXHIGHNY-26JUL02' }
    const markets = HOSTILE.map((ticker) => marketRecord(ticker, close))
    await postgres.transaction((transaction) => writeMarkets(transaction, markets))
  },
})
const chromium = browserOfThisFile()
const skip = withoutChromium

async function open(fragment = '', options = {}) {
  return openExplorer(chromium.browser, file.service.url, fragment, options)
}

/** Waits until a view is complete. */
async function shown(page: Page, view: string): Promise<void> {
  if (view === 'data') await page.getByText('Asked at').waitFor()
  else await wholeRows(page)
}

test('a link shows the same picture, and so do Back and Forward', { skip }, async () => {
  const { page, faults } = await open(
    `#view=book&${MARKET}&from=2026-07-02T15:10:00Z&to=2026-07-02T15:20:00Z&at=2026-07-02T15:12:30Z`,
  )
  await wholeRows(page)
  const ladder = await tableCells(page, 'Book at 2026-07-02 15:12:30Z')
  const [address, picture] = [page.url(), await pictureOf(page)]
  await page.reload()
  await wholeRows(page)
  assert.equal(page.url(), address)
  assert.equal(await pictureOf(page), picture)
  assert.deepEqual(await tableCells(page, 'Book at 2026-07-02 15:12:30Z'), ladder)
  await page.getByRole('link', { name: 'Candles' }).click()
  await page.locator('caption', { hasText: 'Candles' }).waitFor({ state: 'attached' })
  await wholeRows(page)
  await page.goBack()
  await page.locator('.plot-area').waitFor()
  await wholeRows(page)
  assert.equal(page.url(), address)
  assert.equal(await pictureOf(page), picture)
  await page.goForward()
  await page.locator('caption', { hasText: 'Candles' }).waitFor({ state: 'attached' })
  assert.match(page.url(), /view=candles/)
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

const WRONG: readonly (readonly [fragment: string, target: string, parameters: readonly string[]])[] = [
  ['view=day&series=KXHIGHNY&event=all&date=banana', 'lob?series=KXHIGHNY&date=banana', ['date']],
  [`view=day&${MARKET}&interval=0`, 'lob?series=KXHIGHNY-26JUL02&date=2026-07-02&interval=0', ['interval']],
  [
    'view=day&source=nope&series=KXHIGHNY&event=all&date=2026-07-02',
    'lob?source=nope&series=KXHIGHNY&date=2026-07-02',
    ['source'],
  ],
  ['view=day&series=NOPE&event=all&date=2026-07-02', 'lob?series=NOPE&date=2026-07-02', []],
  [
    `view=book&${MARKET}&interval=zz`,
    'lob?market=KXHIGHNY-26JUL02-B80.5&date=2026-07-02&interval=zz',
    ['interval'],
  ],
  [
    `view=book&series=KXHIGHNY&event=all&market=NOPE-1&date=2026-07-02`,
    'lob?market=NOPE-1&date=2026-07-02',
    [],
  ],
  [`view=candles&${MARKET}&candle=7`, 'candles?market=KXHIGHNY-26JUL02-B80.5&interval=7', ['interval']],
  [
    'view=candles&series=KXHIGHNY&event=all&market=KXHIGHNY-26JUL02-B80.5&date=banana',
    'candles?market=KXHIGHNY-26JUL02-B80.5&from=banana&to=banana',
    ['from', 'to'],
  ],
  [
    `view=weather&${MARKET}&interval=9999`,
    'lob?series=KXHIGHNY-26JUL02&date=2026-07-02&interval=9999',
    ['interval'],
  ],
  ['view=weather&series=KXHIGHNY&event=all&date=banana', 'lob?series=KXHIGHNY&date=banana', ['date']],
]

test("a refused request shows the server's message and the parameter", { skip }, async () => {
  for (const [fragment, target, parameters] of WRONG) {
    const problem = await readProblem(await file.service.get(`/api/v1/${target}`))
    const { page } = await open(`#${fragment}`)
    const alert = page.getByRole('alert')
    await alert.waitFor()
    assert.ok((await alert.innerText()).includes(problem.detail), `${fragment}: ${await alert.innerText()}`)
    const named = await alert.locator('li code').allInnerTexts()
    assert.deepEqual(named, parameters, fragment)
    await leaveExplorer(page)
  }
})

test('on a phone the error of a refused request is visible', { skip }, async () => {
  for (const fragment of [`view=day&${MARKET}&interval=7000`, `view=book&${MARKET}&interval=7000`]) {
    const { page } = await open(`#${fragment}`, { viewport: { width: 390, height: 740 } })
    await page.getByRole('alert').waitFor()
    const box = await page.getByRole('alert').boundingBox()
    assert.ok(box !== null && box.y > 0 && box.y + box.height <= 740, JSON.stringify(box))
    await leaveExplorer(page)
  }
})

test('a long response is drawn while it arrives and can be stopped', { skip }, async () => {
  const { page } = await open(`#view=book&${MARKET}&interval=1`)
  // With the first rows: on a busy machine a pointer may come too late.
  await page.evaluate(`new Promise((resolve) => {
    const stopEarly = () => {
      const status = document.querySelector('#request .status')
      if (!status?.textContent.endsWith('so far')) return
      observer.disconnect()
      document.querySelector('button.stop').click()
      resolve()
    }
    const observer = new MutationObserver(stopEarly)
    observer.observe(document, { childList: true, characterData: true, subtree: true })
    stopEarly()
  })`)
  const status = page.getByText(/ until it was stopped$/)
  await status.waitFor()
  const rows = Number((await status.innerText()).split(' ')[0]?.replaceAll(',', ''))
  assert.ok(rows > 0 && rows < 86_400, String(rows))
  // What came is there: a ladder and as many rows of the table.
  await page.getByText(`table of ${rows.toLocaleString('en-GB')} rows`).waitFor()
  assert.ok((await tableCells(page, 'Book at')).length > 1)
  assert.ok(await page.getByRole('button', { name: 'Stop' }).isHidden())
  // The slot is free again, at once.
  const again = await file.service.get('/api/v1/lob?market=KXHIGHNY-26JUL02-B80.5&date=2026-07-02&hour=1')
  assert.equal(again.status, 200)
  await again.arrayBuffer()
  await leaveExplorer(page)
})

test('everything works with the keyboard alone', { skip }, async () => {
  const { page, faults } = await open('')
  await wholeRows(page)
  const focused = (): Promise<string> =>
    page.evaluate(
      `(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).trim()`,
    )
  const tabTo = async (name: string): Promise<void> => {
    for (let press = 0; press < 60; press += 1) {
      if ((await focused()) === name) return
      await page.keyboard.press('Tab')
    }
    assert.fail(`Tab never comes to ${name}`)
  }
  await page.keyboard.press('Tab')
  assert.equal(await focused(), 'Skip to the picture')
  await tabTo('Book')
  const outline: string = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
  assert.equal(outline, 'solid')
  await page.keyboard.press('Enter')
  await page.locator('.plot-area').waitFor()
  await wholeRows(page)
  await tabTo('Time')
  const caption = page.locator('.ladder caption')
  const before = (await caption.innerText()).replace('Book at ', '')
  await page.keyboard.press('ArrowLeft')
  const after = (await caption.innerText()).replace('Book at ', '')
  assert.equal(Date.parse(before) - Date.parse(after), 60_000)
  const spoken = await page.getByLabel('Time', { exact: true }).getAttribute('aria-valuetext')
  assert.match(spoken ?? '', /bid \d+, ask \d+$/)
  const finer = page.waitForRequest((request) => request.url().includes('interval=1&'))
  for (let press = 0; press < 6; press += 1) await page.keyboard.press('+')
  await finer
  await wholeRows(page)
  await page.keyboard.press('0')
  // The calendar opens, moves by arrow keys and closes by Escape.
  await page.getByRole('button', { name: /^2026-07-0\d$/ }).focus()
  await page.keyboard.press('Enter')
  await page.locator('.calendar').waitFor()
  assert.equal(await focused(), '2026-07-03')
  await page.keyboard.press('ArrowLeft')
  assert.equal(await focused(), '2026-07-02')
  await page.keyboard.press('Escape')
  assert.ok(await page.locator('.calendar').isHidden())
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string }[]
  }[]
}

for (const colorScheme of ['light', 'dark'] as const)
  test(
    `axe finds nothing in any view, ${colorScheme}`,
    { skip: skip || (colorScheme === 'dark' && inFullGear) },
    async () => {
      for (const view of VIEWS) {
        const { page, faults } = await open(`#view=${view}&${MARKET}`, { colorScheme })
        await shown(page, view)
        for (const summary of await page.locator('summary').all()) await summary.click()
        await page.evaluate(axe.source)
        const { violations }: AxeResult = await page.evaluate('axe.run()')
        const found = violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html.slice(0, 200))])
        assert.deepEqual(found, [], view)
        assert.deepEqual(faults, [])
        await leaveExplorer(page)
      }
    },
  )

test('the scheme of the system is followed, also when it changes', { skip }, async () => {
  const { page } = await open('', { colorScheme: 'dark' })
  await wholeRows(page)
  const background = (): Promise<string> => page.evaluate('getComputedStyle(document.body).backgroundColor')
  assert.equal(await background(), 'rgb(18, 21, 26)')
  const dark = await pictureOf(page)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.getByText('Loading').waitFor({ state: 'hidden' })
  await wholeRows(page)
  assert.equal(await background(), 'rgb(255, 255, 255)')
  assert.notEqual(await pictureOf(page), dark)
  await page.close()
})

test('nothing is wider than a screen of 360 pixels', { skip }, async () => {
  for (const view of VIEWS) {
    const { page, faults } = await open(`#view=${view}&${MARKET}`, { viewport: { width: 360, height: 740 } })
    await shown(page, view)
    assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= 360, view)
    assert.deepEqual(faults, [])
    await leaveExplorer(page)
  }
})

test('any market name is shown as text', { skip }, async () => {
  for (const market of HOSTILE) {
    const query = new URLSearchParams({
      view: 'book',
      series: 'KXHIGHNY',
      event: 'KXHIGHNY-26JUL02',
      market,
      date: '2026-07-02',
    })
    const { page, faults } = await open(`#${query.toString()}`)
    const refusal = page.getByRole('alert')
    const status = page.locator('#request .status').filter({ hasText: 'rows' })
    await refusal.or(status).first().waitFor()
    assert.equal(await page.getByRole('combobox', { name: 'Market', exact: true }).inputValue(), market)
    assert.ok((await page.locator('h2').innerText()).startsWith(market.slice(0, 60)))
    const counts: number[] = await page.evaluate(
      `['script', 'img', '#view *:not(button)[onerror]'].map((name) => document.querySelectorAll(name).length)`,
    )
    assert.deepEqual(counts, [1, 0, 0])
    assert.equal(await page.title(), 'Book · Bookcast')
    assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= 1280)
    // A refused request is an error of the network to the browser's console.
    assert.deepEqual(
      faults.filter((fault) => !fault.startsWith('Failed to load resource')),
      [],
    )
    await leaveExplorer(page)
  }
})

test('an API key is requested, used, and kept only in the page', { skip }, async (t) => {
  const key = 'a-key-of-enough-characters'
  const { url } = await startSampleServer(t, { apiKeys: [{ name: 'charts', sha256: sha256Hex(key) }] })
  const { page } = await openExplorer(chromium.browser, url)
  const input = page
    .getByLabel('API key', { exact: true })
    .locator('input')
    .or(page.locator('.key-form input'))
    .first()
  await input.waitFor()
  await input.fill('a-wrong-key-of-enough-characters')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  await input.waitFor()
  await input.fill(key)
  await page.keyboard.press('Enter')
  assert.ok((await wholeRows(page)) > 1000)
  assert.ok(await page.getByRole('alert').isHidden())
  for (const language of ['URL', 'curl', 'Python', 'TypeScript', 'DuckDB']) {
    const code = await codeIn(page, language)
    assert.ok(!code.includes(key))
    assert.equal(code.includes('BOOKCAST_API_KEY'), language !== 'URL', language)
  }
  const kept: string = await page.evaluate(
    `JSON.stringify([location.href, document.cookie, { ...localStorage }, { ...sessionStorage }, document.body.outerHTML])`,
  )
  assert.ok(!kept.includes(key))
  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'csv', exact: true }).click()
  assert.equal((await downloading).suggestedFilename(), 'lob.csv')
  await page.close()
})

test('/ is a page for browsers and a list of endpoints for other clients', async () => {
  const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
  const page = await file.service.get('/', { headers: { Accept: browser } })
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'self'; object-src 'none';/)
  assert.match(page.headers.get('vary') ?? '', /\bAccept\b,/)
  for (const accept of ['*/*', 'application/json', '']) {
    const list = await file.service.get('/', { headers: { Accept: accept } })
    assert.equal(list.headers.get('content-type'), 'application/json')
    const { endpoints }: { endpoints: { path: string }[] } = JSON.parse(await list.text())
    assert.ok(endpoints.some(({ path }) => path === '/api/v1/lob'))
    assert.match(list.headers.get('vary') ?? '', /\bAccept\b,/)
  }
  const head = await file.service.get('/', { method: 'HEAD' })
  assert.equal(head.headers.get('content-type'), 'application/json')
  const etag = page.headers.get('etag') ?? ''
  const again = await file.service.get('/', { headers: { Accept: browser, 'If-None-Match': etag } })
  assert.equal(again.status, 304)
  const other = await file.service.get('/', { headers: { 'If-None-Match': etag } })
  assert.equal(other.status, 200)
})

test('page, style sheets and scripts are small, and files with hashed names are cached forever', async (t) => {
  const get = async (target: string) =>
    httpRequest(`${file.service.url}/${target}`, {
      headers: { 'accept-encoding': 'gzip', accept: 'text/html' },
    })
  const page = await get('')
  let weight = (await page.body.arrayBuffer()).byteLength
  const html = await file.service.get('/', { headers: { Accept: 'text/html' } })
  const names = [...(await html.text()).matchAll(/(?:src|href)="(explorer\/[^"]*\.[^"]+)"/g)].map(
    ([, name]) => name ?? '',
  )
  for (const name of new Set(names)) {
    const { statusCode, headers, body } = await get(name)
    assert.equal(statusCode, 200, name)
    assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
    assert.match(name, /^explorer\/[0-9a-f]{16}\//)
    weight += (await body.arrayBuffer()).byteLength
  }
  t.diagnostic(`${names.length} files, ${weight} bytes`)
  assert.ok(weight <= WEIGHT_BYTES_MAX, String(weight))
})

test('the first picture takes few requests, none of them twice', { skip }, async (t) => {
  const page = await chromium.browser.newPage()
  const asked: string[] = []
  page.on('request', (request) => {
    // The icon is taken anew, from what the browser keeps, when the address changes; whether data is invented is asked later.
    if (!/\.svg$|\/health$/.test(request.url())) asked.push(request.url().replace(file.service.url, ''))
  })
  await page.goto(file.service.url, { waitUntil: 'commit' })
  await wholeRows(page)
  const bytes: number = await page.evaluate(
    `['navigation', 'resource'].flatMap((type) => performance.getEntriesByType(type))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
  )
  t.diagnostic(`${asked.length} requests, ${bytes} bytes`)
  assert.equal(new Set(asked).size, asked.length, asked.join(' '))
  const ofData = asked.filter((target) => /api|recordings/.test(target))
  assert.deepEqual(
    ofData.slice(0, 2).toSorted(),
    ['/api/v1/series?limit=10000', '/explorer/recordings'],
    'what the page preloads is what the script asks for',
  )
  // Beside them the markets, the books and whether there are trades; the page, its script and its style sheet.
  assert.equal(ofData.length, 5, ofData.join(' '))
  assert.equal(asked.length, 8, asked.join(' '))
  assert.ok(bytes <= FIRST_PICTURE_BYTES_MAX, String(bytes))
  await page.close()
})

test('without the explorer only the list is served', async (t) => {
  const { url } = await startSampleServer(t, { hasExplorer: false })
  const list = await fetch(`${url}/`, { headers: { Accept: 'text/html' } })
  assert.equal(list.headers.get('content-type'), 'application/json')
  const html = await (await file.service.get('/', { headers: { Accept: 'text/html' } })).text()
  const script = /src="([^"]+)"/.exec(html)?.[1]
  for (const path of [script, 'explorer/recordings'])
    assert.equal((await fetch(`${url}/${path}`)).status, 404)
})
