// The installed Chromium, if there is one, for tests that view pages like users.

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

/** Why a browser test is skipped; false if there is a browser. */
export const withoutChromium: false | string =
  executablePath === undefined ? 'no Chromium is installed (CHROMIUM_PATH names one elsewhere)' : false

/** Timeout of a page, long enough for a busy machine. A broken page is detected only after it. */
const WAIT_MS_MAX = 120_000

/** Starts the installed browser. */
export async function launchChromium(args: readonly string[] = []): Promise<Browser> {
  if (executablePath === undefined) throw new Error('no Chromium is installed')
  // CI runs as root, for which there is no sandbox.
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
