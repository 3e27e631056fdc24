// A proxy may serve the whole server below a path and strip that path: the pages then request everything below it.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request as ask } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { browserOfThisFile, withoutChromium } from '../support/chromium.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'
import { codeIn, openExplorer, wholeRows } from '../support/explorer-page.ts'

const PATH = '/markets/bookcast'

const file = serviceOfThisFile()
const chromium = browserOfThisFile()
const skip = withoutChromium

/** The service behind a path; requests elsewhere get 404 and are recorded. */
async function behindPath(t: TestContext): Promise<{ readonly url: string; readonly elsewhere: string[] }> {
  const elsewhere: string[] = []
  const proxy = createServer((request, response) => {
    const { url = '', headers } = request
    if (!url.startsWith(`${PATH}/`)) {
      elsewhere.push(url)
      response.writeHead(404).end()
      return
    }
    const upstream = ask(file.service.url + url.slice(PATH.length), { headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    upstream.on('error', () => response.destroy()).end()
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.after(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${PATH}`, elsewhere }
}

/** The broken links of a page. */
async function brokenLinks(page: Page): Promise<string[]> {
  const links: string[] = await page.evaluate(`[...new Set([...document.links].map(({ href }) => href))]`)
  assert.ok(links.length > 3, String(links))
  const statuses = await Promise.all(links.map(async (link) => (await fetch(link)).status))
  return links.filter((_, index) => statuses[index] !== 200)
}

test('the explorer and its snippets send requests below the path', { skip }, async (t) => {
  const { url, elsewhere } = await behindPath(t)
  const { page, faults } = await openExplorer(chromium.browser, url)
  assert.equal(await wholeRows(page), 6 * 1440)
  assert.ok((await codeIn(page, 'Python')).includes(`bookcast.Client("${url}")`))
  const address = await codeIn(page, 'URL')
  assert.ok(address.startsWith(`${url}/api/v1/lob?`), address)
  assert.equal((await fetch(address)).status, 200)
  assert.deepEqual(faults, [])
  assert.deepEqual(elsewhere, [])
  await page.close()
})

test(
  'the documentation sends requests below the path, and so do its links and forms',
  { skip },
  async (t) => {
    const { url, elsewhere } = await behindPath(t)
    const page = await chromium.browser.newPage()
    await page.goto(`${url}/docs`)
    await page.waitForSelector('.opblock')
    assert.deepEqual(await brokenLinks(page), [])
    await page.locator('.opblock-summary').first().click()
    await page.locator('button.execute').click()
    await page.locator('.live-responses-table').getByText('market_id').first().waitFor()
    const asked = await page.locator('.request-url').innerText()
    assert.ok(asked.includes(`${PATH}/api/v1/lob?`), asked)
    await page.getByRole('link', { name: 'Settlement' }).click()
    await page.getByRole('heading', { level: 1, name: 'Settlement' }).waitFor()
    assert.deepEqual(await brokenLinks(page), [])
    assert.equal(await page.evaluate('document.styleSheets[0].cssRules.length > 0'), true)
    assert.deepEqual(elsewhere, [])
    await page.close()
  },
)
