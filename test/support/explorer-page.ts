// The explorer in a real browser, and common queries of its tests. Expressions for the page are strings, because the tests are
// compiled without the browser's types.

import assert from 'node:assert/strict'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { IS_FULL_EFFORT } from './effort.ts'

export type Rgb = readonly [red: number, green: number, blue: number]

export interface ExplorerPage {
  readonly page: Page
  /** Faults of a page: error messages, requests to other origins, failed transfers. */
  readonly faults: string[]
}

/** Receives a page's faults, and knows the server that the page may use. */
interface Watch {
  readonly url: string
  readonly faults: string[]
}

/** Idle pages by their options, open for the next test: creating a page takes longer than loading most of its content. */
const SPARE = new WeakMap<Browser, Map<string, Page[]>>()
const WATCHES = new WeakMap<Page, { readonly madeWith: string; watch: Watch | undefined }>()

async function makePage(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options })
  const place: { readonly madeWith: string; watch: Watch | undefined } = {
    madeWith: JSON.stringify(options),
    watch: undefined,
  }
  WATCHES.set(page, place)
  const fault = (text: string): void => void place.watch?.faults.push(text)
  page.on('console', (message) => {
    // This warning comes from the tests, which read pixels.
    const isOurs = message.text().includes('willReadFrequently')
    if (!isOurs && (message.type() === 'error' || message.type() === 'warning')) fault(message.text())
  })
  page.on('pageerror', (error) => fault(error.message))
  page.on('dialog', (dialog) => {
    fault(`a dialog says ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    if (place.watch !== undefined && !request.url().startsWith(`${place.watch.url}/`))
      fault(`asked ${request.url()}`)
  })
  return page
}

/** Opens the page with a state; resolves as soon as the browser has begun to load it. */
export async function openExplorer(
  browser: Browser,
  url: string,
  fragment = '',
  options: BrowserContextOptions = {},
): Promise<ExplorerPage> {
  const page = SPARE.get(browser)?.get(JSON.stringify(options))?.pop() ?? (await makePage(browser, options))
  const watch: Watch = { url, faults: [] }
  const place = WATCHES.get(page)
  if (place !== undefined) place.watch = watch
  await page.goto(`${url}/${fragment}`, { waitUntil: 'commit' })
  return { page, faults: watch.faults }
}

/** Releases a page. With quick effort a later test reuses it, so a test that changes it permanently must close it. */
export async function leaveExplorer(page: Page): Promise<void> {
  const browser = page.context().browser()
  const place = WATCHES.get(page)
  if (IS_FULL_EFFORT || browser === null || place === undefined) return page.close()
  place.watch = undefined
  await page.goto('about:blank')
  const spare = SPARE.get(browser) ?? new Map<string, Page[]>()
  SPARE.set(browser, spare)
  spare.set(place.madeWith, [...(spare.get(place.madeWith) ?? []), page])
}

const WHOLE = /^([\d,]+) rows, \S+ [kMG]?B$/

/** Waits until all rows have arrived; returns their number. */
export async function wholeRows(page: Page): Promise<number> {
  const status = page.locator('#request .status').filter({ hasText: WHOLE })
  await status.waitFor()
  // They are drawn with the next frame.
  await nextPicture(page)
  return Number((WHOLE.exec((await status.textContent()) ?? '')?.[1] ?? '').replaceAll(',', ''))
}

async function nextPicture(page: Page): Promise<void> {
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
}

/** All cells of the table with this caption, including row headings; opens the element that hides it. */
export async function tableCells(page: Page, caption: string): Promise<string[][]> {
  const table = page.locator('table').filter({ has: page.locator('caption', { hasText: caption }) })
  const details = page.locator('details').filter({ has: table })
  if ((await details.count()) > 0 && (await details.getAttribute('open')) === null)
    await details.locator('summary').click()
  await table.waitFor()
  // The table is filled when the browser reports that it is open, after the click.
  await nextPicture(page)
  return page.evaluate(`(() => {
    const captions = [...document.querySelectorAll('caption')]
    const caption = captions.find(({ textContent }) => textContent.includes(${JSON.stringify(caption)}))
    const rows = [...caption.closest('table').tBodies[0].rows]
    return rows.map((row) => [...row.cells].map((cell) => cell.textContent))
  })()`)
}

/**
 * The colours around a point of a plot, given as shares of its width and of its height from the bottom.
 * @param index which plot of the page
 */
export async function coloursAt(
  page: Page,
  [x, y]: readonly [x: number, y: number],
  { index = 0, radiusPx = 3 }: { readonly index?: number; readonly radiusPx?: number } = {},
): Promise<Rgb[]> {
  const parts: number[] = await page.evaluate(`(() => {
    const plot = document.querySelectorAll('.plot')[${index}]
    const canvas = plot.querySelector('canvas')
    const area = plot.querySelector('.u-over, .plot-area').getBoundingClientRect()
    const { left, top } = canvas.getBoundingClientRect()
    const x = Math.floor(area.left - left + area.width * ${x})
    const y = Math.floor(area.top - top + area.height * (1 - ${y}))
    const size = ${2 * radiusPx + 1}
    return [...canvas.getContext('2d').getImageData(x - ${radiusPx}, y - ${radiusPx}, size, size).data]
  })()`)
  const pixels = Array.from({ length: parts.length / 4 }, (_, pixel) => parts.slice(4 * pixel, 4 * pixel + 3))
  return pixels.map(([red = 0, green = 0, blue = 0]) => [red, green, blue])
}

/** Whether one of the colours is close enough: drawing at the edge of a pixel mixes colours a little. */
export function hasColour(colours: readonly Rgb[], wanted: Rgb, tolerance = 4): boolean {
  return colours.some((colour) =>
    colour.every((part, channel) => Math.abs(part - (wanted[channel] ?? 0)) <= tolerance),
  )
}

export function assertColour(colours: readonly Rgb[], wanted: Rgb, what: string, tolerance?: number): void {
  assert.ok(
    hasColour(colours, wanted, tolerance),
    `${what}: no ${String(wanted)} among ${JSON.stringify(colours)}`,
  )
}

/** The request's code in a language. */
export async function codeIn(page: Page, language: string): Promise<string> {
  await page.getByRole('button', { name: language, exact: true }).click()
  return page.locator('#request pre').innerText()
}

/** A picture's pixels as one string, for comparison. */
export async function pictureOf(page: Page): Promise<string> {
  return page.evaluate(`document.querySelector('.plot canvas').toDataURL()`)
}
