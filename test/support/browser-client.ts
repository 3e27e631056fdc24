// The TypeScript client in a real browser, loaded like in a page. Test servers do not allow other origins, so this browser's origin
// checks are off. Its connections, codings and streams work like in any Chromium.

import { readFile } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { launchChromium } from './chromium.ts'
import type { ClientCall, ClientResult } from './typescript-calls.ts'

const CLIENT = new URL('../../site/clients/bookcast.js', import.meta.url)
const CALLS = new URL('typescript-calls.js', import.meta.url)

async function moduleAddress(file: URL): Promise<string> {
  return `data:text/javascript;base64,${(await readFile(file)).toString('base64')}`
}

export class BrowserClient {
  readonly name = 'TypeScript in Chromium'
  readonly hasFiles = false
  #browser: Promise<Browser> | undefined
  #page: Promise<Page> | undefined

  async call(call: ClientCall): Promise<ClientResult> {
    this.#page ??= this.#open()
    const page = await this.#page
    return page.evaluate(`run(${JSON.stringify(call)})`)
  }

  async close(): Promise<void> {
    await (await this.#browser)?.close()
  }

  async #open(): Promise<Page> {
    this.#browser = launchChromium(['--disable-web-security'])
    const page = await (await this.#browser).newPage()
    await page.evaluate(`(async () => {
      const bookcast = await import(${JSON.stringify(await moduleAddress(CLIENT))})
      const { callClient } = await import(${JSON.stringify(await moduleAddress(CALLS))})
      globalThis.run = (call) => callClient(bookcast, call)
    })()`)
    return page
  }
}
