// The installed Chromium, for tests that look at pages as people do; there may be none.

import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { SharedByFiles } from './shared-by-files.ts'

const PLACES = [
  process.env['CHROMIUM_PATH'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

const executablePath = PLACES.find((place) => place !== undefined && existsSync(place))

/** Why a test that needs a browser is skipped; false when there is one. */
export const withoutChromium: false | string =
  executablePath === undefined ? 'no Chromium is installed (CHROMIUM_PATH names one elsewhere)' : false

/** So long a page may take on a machine that does much else; what is broken is found out as late. */
const WAIT_MS_MAX = 120_000

/** Starts the browser that is installed. */
export async function launchChromium(args: readonly string[] = []): Promise<Browser> {
  if (executablePath === undefined) throw new Error('no Chromium is installed')
  // Root, as which CI runs, has no sandbox.
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', ...args] })
  const newPage = browser.newPage.bind(browser)
  browser.newPage = async (options) => {
    const page = await newPage(options)
    page.setDefaultTimeout(WAIT_MS_MAX)
    return page
  }
  return browser
}

const SHARED = new SharedByFiles<Browser | undefined>(async () => {
  const browser = executablePath === undefined ? undefined : await launchChromium()
  return { value: browser, end: async () => browser?.close() }
})

/** A headless browser for the tests of this file. Call it at top level. */
export function browserOfThisFile(): { readonly browser: Browser } {
  const shared = SHARED.ofThisFile()
  return {
    get browser() {
      const browser = shared()
      if (browser === undefined) throw new Error('no Chromium is installed')
      return browser
    },
  }
}
