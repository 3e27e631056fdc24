// The explorer in the installed Chromium: time to the first picture, drawing and moving a day of seconds, memory of the page, and
// the effect on the server's other clients.

import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { BenchLake } from './bench-lake.ts'
import { median } from './measure.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { startBookcastWithStore } from './server-process.ts'

const LAKE = fileURLToPath(new URL('../../data-samples/lake', import.meta.url))
const PLACES = [process.env['CHROMIUM_PATH'] ?? '', '/usr/bin/chromium', '/usr/bin/google-chrome']
const BOOK =
  '#view=book&series=KXHIGHNY&event=KXHIGHNY-26JUL02&market=KXHIGHNY-26JUL02-B80.5&date=2026-07-02&interval=1'
const WHOLE = /^[\d,]+ rows, \S+ [kMG]?B$/
const POLL_MS = 20
const FRAMES = 120
/** Cold openings of each page, in turns: a single one may be delayed by other load on the machine. */
const OPENINGS = { smoke: 1, full: 9 } as const

interface Opening {
  readonly ms: number
  readonly requests: number
  /** Of all responses until then, as transferred. */
  readonly bytes: number
}

/** Time from navigation, with an empty cache, until `selector` matches; and the requests made until then. */
async function openCold(browser: Browser, address: string, selector: string): Promise<Opening> {
  const page = await browser.newPage()
  // The page itself records when it has painted: afterwards it may be too busy to be queried.
  await page.addInitScript(`window.shown = new Promise((resolve) => {
    const look = () => requestAnimationFrame(() => {
      if (document.querySelector(${JSON.stringify(selector)}) === null) look()
      else requestAnimationFrame(() => resolve(performance.now()))
    })
    look()
  })`)
  await page.goto(address, { waitUntil: 'commit' })
  const opening: Opening = await page.evaluate(`(async () => {
    const ms = await window.shown
    const answers = ['navigation', 'resource'].flatMap((type) => performance.getEntriesByType(type))
    return { ms, requests: answers.length, bytes: answers.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0) }
  })()`)
  await page.close()
  return opening
}

/** Opens the pages like a first-time visitor. */
async function openings(browser: Browser, url: string, size: BenchSize): Promise<Figure[]> {
  const pages = [
    { address: url, selector: '.strikes tbody tr', name: 'first picture after navigation', atMost: 1000 },
    {
      address: `${url}/docs`,
      selector: '.endpoints a, .opblock',
      name: '/docs: first endpoint after navigation',
      atMost: 2000,
    },
    { address: `${url}/docs`, selector: '.opblock', name: '/docs: first form after navigation' },
  ]
  const seen = pages.map((page) => ({ ...page, taken: [] as Opening[] }))
  for (const { address, selector } of pages) await openCold(browser, address, selector)
  for (let opening = 0; opening < OPENINGS[size]; opening += 1)
    for (const { address, selector, taken } of seen) taken.push(await openCold(browser, address, selector))
  const [explorer] = seen
  const times = seen.flatMap(({ name, taken, ...goal }): Figure[] => {
    const atMost = 'atMost' in goal ? { atMost: goal.atMost } : {}
    return [
      {
        name: `${name}, median of ${taken.length}`,
        value: median(taken.map(({ ms }) => ms)),
        unit: 'ms',
        ...atMost,
      },
      { name: `${name}, slowest`, value: Math.max(...taken.map(({ ms }) => ms)), unit: 'ms' },
    ]
  })
  return [
    ...times,
    {
      name: 'requests until the first picture',
      value: median((explorer?.taken ?? []).map(({ requests }) => requests)),
      unit: '',
    },
    {
      name: 'bytes until the first picture',
      value: median((explorer?.taken ?? []).map(({ bytes }) => bytes)) / 1000,
      unit: 'kB',
    },
  ]
}

/** Response times of small requests to the server while `during` runs, ms. */
async function answerTimes(url: string, during: Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  const state = { isOver: false }
  const end = (): void => void (state.isOver = true)
  during.then(end, end)
  while (!state.isOver) {
    const begin = performance.now()
    await (await fetch(`${url}/livez`)).arrayBuffer()
    times.push(performance.now() - begin)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return times
}

/** Frames a second while the window moves and zooms in every frame. */
async function frameRate(page: Page): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    const area = document.querySelector('.plot-area')
    const { left, top, width } = area.getBoundingClientRect()
    const wheel = (init) => area.dispatchEvent(new WheelEvent('wheel', {
      clientX: left + width / 2, clientY: top + 50, bubbles: true, cancelable: true, ...init }))
    for (let step = 0; step < 12; step += 1) wheel({ ctrlKey: true, deltaY: -50 })
    let frame = 0
    let begin
    const step = (now) => {
      begin ??= now
      if (frame === ${FRAMES}) resolve((1000 * frame) / (now - begin))
      else {
        const phase = frame % 40 < 20 ? 1 : -1
        if (frame % 4 === 0) wheel({ ctrlKey: true, deltaY: 20 * phase })
        else wheel({ shiftKey: true, deltaY: 15 * phase })
        frame += 1
        requestAnimationFrame(step)
      }
    }
    requestAnimationFrame(step)
  })`)
}

/** Memory of the page's scripts, including buffers, MB. */
async function heldMegabytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  const usage = (await session.send('Runtime.getHeapUsage')) as Readonly<Record<string, number>>
  return (
    ((usage['usedSize'] ?? 0) + (usage['embedderHeapUsedSize'] ?? 0) + (usage['backingStorageSize'] ?? 0)) /
    1e6
  )
}

/** A market's day of seconds: time to draw, frame rate, memory, and response times of other clients. */
async function day(browser: Browser, url: string): Promise<Figure[]> {
  const atRest = await answerTimes(url, new Promise((resolve) => setTimeout(resolve, 2000)))
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  await page.goto(`${url}/${BOOK}`, { waitUntil: 'commit' })
  const begin = performance.now()
  const whole = page.locator('#request .status').filter({ hasText: WHOLE }).waitFor({ timeout: 120_000 })
  const drawn = page.locator('.ladder tbody tr').nth(1).waitFor()
  const drawnMs = drawn.then(() => performance.now() - begin)
  const whileDrawn = await answerTimes(url, whole)
  const wholeMs = performance.now() - begin
  const figures: Figure[] = [
    { name: 'first of 86,400 ticks drawn after', value: await drawnMs, unit: 'ms' },
    { name: 'all 86,400 ticks drawn after', value: wholeMs, unit: 'ms' },
    { name: 'moved and zoomed at', value: await frameRate(page), unit: 'frames/s', atLeast: 50 },
    { name: 'held by the page', value: await heldMegabytes(page), unit: 'MB', atMost: 200 },
    { name: 'small answers at rest, median', value: median(atRest), unit: 'ms' },
    { name: 'small answers while it is drawn, median', value: median(whileDrawn), unit: 'ms' },
  ]
  await page.close()
  return figures
}

/** Does not use the benchmark lake: it shows the sample. */
export async function runExplorer(_lake: BenchLake, size: BenchSize): Promise<BenchReport> {
  const report = { benchmark: 'explorer', size, hashes: {} }
  const executablePath = PLACES.find((place) => place !== '' && existsSync(place))
  if (executablePath === undefined)
    return { ...report, figures: [], notes: ['no Chromium is installed (CHROMIUM_PATH names one elsewhere)'] }
  const directory = await mkdtemp(join(tmpdir(), 'bookcast-bench-'))
  const server = await startBookcastWithStore(LAKE, join(directory, 'data'))
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const url = `http://${server.address.host}:${server.address.port}`
    const load = loadavg()[0] ?? Number.NaN
    const figures = [...(await openings(browser, url, size)), ...(await day(browser, url))]
    const notes = [
      `load of the machine's ${cpus().length} processors: ${load.toFixed(1)} before, ${(loadavg()[0] ?? Number.NaN).toFixed(1)} after`,
    ]
    return { ...report, figures, notes }
  } finally {
    await browser.close()
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  }
}
