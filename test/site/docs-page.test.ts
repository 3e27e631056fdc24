// /docs in a real browser: the viewer shows every endpoint, sends the values of its forms, sends requests only to this server
// and does not violate the page's content security policy.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { browserOfThisFile, withoutChromium } from '../support/chromium.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'

const file = serviceOfThisFile()
const chromium = browserOfThisFile()

/** Opens a URL and records violations of the page. */
async function open(path: string): Promise<{ readonly page: Page; readonly faults: string[] }> {
  const { url } = file.service
  const page = await chromium.browser.newPage()
  const faults: string[] = []
  page.on('console', (message) => {
    // A busy machine begins the viewer later than Chromium expects of what is preloaded.
    const isLate = message.text().includes('preloaded using link preload but not used within')
    if (!isLate && (message.type() === 'error' || message.type() === 'warning')) faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`) && !request.url().startsWith('data:')) faults.push(request.url())
  })
  await page.goto(url + path, { waitUntil: 'commit' })
  return { page, faults }
}

test(
  '/docs shows every endpoint of the document and sends requests only to this server',
  { skip: withoutChromium },
  async () => {
    const { url } = file.service
    const { page, faults } = await open('/docs')
    await page.waitForSelector('.opblock')
    const description: { paths: object } = JSON.parse(await (await fetch(`${url}/openapi.json`)).text())
    const shown = await page.locator('.opblock-summary-path').allInnerTexts()
    assert.deepEqual(
      shown.map((path) => path.replaceAll('​', '')).toSorted(),
      Object.keys(description.paths).toSorted(),
    )
    assert.deepEqual(faults, [])
    await page.close()
  },
)

test(
  '/docs lists every endpoint before and without its viewer, and opens the selected one',
  { skip: withoutChromium },
  async () => {
    const { url } = file.service
    const description: { paths: object } = JSON.parse(await (await fetch(`${url}/openapi.json`)).text())
    const page = await chromium.browser.newPage({ javaScriptEnabled: false })
    await page.goto(`${url}/docs`)
    assert.deepEqual(
      (await page.locator('.endpoints a').allInnerTexts()).toSorted(),
      Object.keys(description.paths)
        .map((path) => `GET ${path}`)
        .toSorted(),
    )
    const anchor = page.locator('.endpoints a').filter({ hasText: /\/climate$/ })
    const climate = (await anchor.getAttribute('href')) ?? ''
    await page.close()
    const opened = await open(`/${climate}`)
    await opened.page.locator('.opblock.is-open').getByText('/api/v1/climate', { exact: true }).waitFor()
    assert.equal(await opened.page.locator('.opblock.is-open').count(), 1)
    assert.equal(await opened.page.locator('.endpoints').count(), 0)
    // The viewer takes the underscore of any operation's name for an old way of writing a space.
    assert.deepEqual(
      opened.faults.filter((fault) => !fault.includes('escaping deep link whitespace')),
      [],
    )
    await opened.page.close()
  },
)

test(
  'a form of /docs is sent with its defaults and shows the response',
  { skip: withoutChromium },
  async () => {
    const { url } = file.service
    const { page, faults } = await open('/docs')
    await page.locator('.opblock-summary').first().click()
    await page.locator('button.execute').click()
    const answer = page.locator('.live-responses-table')
    await answer.getByText('market_id').first().waitFor()
    const asked = await page.locator('.request-url').innerText()
    const target = /\/api\/v1\/lob\?\S+/.exec(asked)?.[0] ?? ''
    const rows: { market_id: string }[] = JSON.parse(await (await fetch(url + target)).text())
    assert.ok(rows.length > 0)
    assert.ok((await answer.innerText()).includes(rows[0]!.market_id))
    assert.deepEqual(faults, [])
    await page.close()
  },
)

test('/docs shows the beginning of a response that is too long', { skip: withoutChromium }, async () => {
  const { page, faults } = await open('/docs')
  await page.locator('.opblock-summary').first().click()
  await page.locator('tr[data-param-name="hour"] input').fill('')
  await page.locator('tr[data-param-name="levels"] input').fill('50')
  await page.locator('button.execute').click()
  await page.getByText('(cut here: use the curl line)').first().waitFor()
  assert.deepEqual(faults, [])
  await page.close()
})

test(
  'the guides use the address of their server, and copy their snippets',
  { skip: withoutChromium },
  async () => {
    const { page, faults } = await open('/docs')
    await page.getByRole('link', { name: 'Pulling a day' }).click()
    await page.getByRole('heading', { level: 1, name: 'Pulling a day' }).waitFor()
    assert.ok(page.url().endsWith('/docs/guides/pulling-a-day'))
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const snippet = page.locator('.snippet').nth(1)
    await snippet.getByRole('button', { name: 'Copy' }).click()
    await snippet.getByRole('button', { name: 'Copied' }).waitFor()
    const copied: string = await page.evaluate('navigator.clipboard.readText()')
    assert.ok(copied.includes(`bookcast.Client("${file.service.url}")`), copied)
    assert.ok(!(await page.locator('body').innerText()).includes('localhost:8080'))
    assert.deepEqual(faults, [])
    await page.close()
  },
)

test('the documentation leads back to the explorer', { skip: withoutChromium }, async () => {
  for (const path of ['/docs', '/docs/guides/gaps']) {
    const { page } = await open(path)
    await page.getByRole('link', { name: 'Explorer' }).click()
    await page.waitForURL((url) => url.pathname === '/')
    await page.close()
  }
})

test(
  'the documentation has the colours of the explorer in both schemes',
  { skip: withoutChromium },
  async () => {
    for (const [colorScheme, surface] of [
      ['light', 'rgb(255, 255, 255)'],
      ['dark', 'rgb(18, 21, 26)'],
    ] as const) {
      for (const path of ['/', '/docs', '/docs/guides/gaps']) {
        const page = await chromium.browser.newPage({ colorScheme })
        await page.goto(file.service.url + path)
        assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), surface, path)
        if (path === '/docs') {
          await page.waitForSelector('.opblock')
          const isDark = await page.evaluate("document.documentElement.classList.contains('dark-mode')")
          assert.equal(isDark, colorScheme === 'dark')
        }
        await page.close()
      }
    }
  },
)
