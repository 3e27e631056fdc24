// The request behind the view, always visible: code to copy, rows and bytes, progress, a Stop button, files to download, and
// the server's error message if it refuses the request.

import { ApiError } from '../clients/typescript/bookcast.ts'
import { answerOf, type ApiRequest, urlOf } from './api-request.ts'
import { copyText } from './clipboard.ts'
import { downloadLinks } from './download-links.ts'
import { button, element, labelledSelect, setChoices } from './element.ts'
import { bytesText, countText } from './number-text.ts'
import type { Session } from './session.ts'
import { type Language, LANGUAGES, snippet } from './snippets.ts'

/** Reads the requests of one view. */
export interface Loading {
  readonly signal: AbortSignal
  /**
   * Passes the rows of a request to `take` as they arrive.
   * @returns whether all rows arrived; an error has been shown to the user
   */
  read<Row>(
    request: ApiRequest<Row>,
    take: (rows: readonly Row[]) => void,
    expectedRows?: number,
  ): Promise<boolean>
}

/** Rows are processed for this long before a pause. */
const BUSY_MS = 24

interface Tally {
  rows: number
  bytes: number
}

export class RequestPanel {
  readonly #session: Session
  readonly #onUnauthorized: () => void
  readonly #status = element('p', { role: 'status', class: 'status' })
  readonly #alert: HTMLElement
  readonly #progress = element('progress', { 'aria-label': 'Rows so far', hidden: true })
  readonly #stop: HTMLButtonElement
  readonly #code = element('code')
  readonly #languages: ReadonlyMap<Language, HTMLButtonElement>
  readonly #choice = labelledSelect('Request', (value) => this.#choose(Number(value)))
  readonly #downloads = element('div', { class: 'downloads' })
  #language: Language = 'curl'
  #requests: readonly ApiRequest[] = []
  #chosen = 0
  #controller = new AbortController()
  readonly #tallies = new Map<ApiRequest, Tally>()
  readonly #running = new Set<ApiRequest>()

  /** @param alert the element above the view for errors, visible without scrolling */
  constructor(root: HTMLElement, alert: HTMLElement, session: Session, onUnauthorized: () => void) {
    this.#alert = alert
    this.#session = session
    this.#onUnauthorized = onUnauthorized
    this.#stop = button('Stop', () => this.#controller.abort('stopped'), { hidden: true, class: 'stop' })
    this.#languages = new Map(LANGUAGES.map((name) => [name, button(name, () => this.#speak(name))]))
    const copy = button('Copy', () => void this.#copy(), { class: 'copy' })
    const code = element(
      'pre',
      { tabindex: 0, role: 'region', 'aria-label': 'The request as code' },
      this.#code,
    )
    root.replaceChildren(
      element('div', { class: 'panel-row' }, this.#stop, this.#progress, this.#status, this.#downloads),
      element(
        'div',
        { class: 'panel-row' },
        this.#choice.field,
        element(
          'div',
          { class: 'buttons', role: 'group', 'aria-label': 'Language' },
          ...this.#languages.values(),
        ),
        copy,
      ),
      code,
    )
    this.#speak(this.#language)
  }

  /** Aborts the requests that are still being read and shows new ones. */
  begin(requests: readonly ApiRequest[]): Loading {
    this.leave()
    const controller = new AbortController()
    this.#controller = controller
    this.#tallies.clear()
    this.#running.clear()
    this.#setRequests(requests)
    this.#choose(0)
    return {
      signal: controller.signal,
      read: (request, take, expectedRows) => this.#read(controller, request, take, expectedRows),
    }
  }

  /** Shows one more request of the view; the caller reads it without `read`. */
  add(request: ApiRequest): void {
    this.#setRequests([...this.#requests, request])
  }

  /** Shows the status of requests that were not read by `read`. */
  report(text: string): void {
    this.#status.textContent = text
  }

  /** Aborts the requests and clears the panel while another view is loading. */
  leave(): void {
    this.end()
    this.#alert.hidden = true
    this.#stop.hidden = true
    this.#progress.hidden = true
    this.#status.textContent = 'Loading …'
  }

  end(): void {
    this.#controller.abort('replaced')
  }

  /** Shows an error. After a 401, also asks for an API key. */
  showError(error: unknown): void {
    if (this.#status.textContent === 'Loading …') this.#status.textContent = ''
    const sentence = error instanceof Error ? error.message : String(error)
    const details =
      error instanceof ApiError && error.errors.length > 0
        ? [
            element(
              'ul',
              {},
              ...error.errors.map(({ parameter, detail }) =>
                element('li', {}, element('code', {}, parameter), `: ${detail}`),
              ),
            ),
          ]
        : []
    this.#alert.replaceChildren(element('p', {}, sentence), ...details)
    this.#alert.hidden = false
    if (error instanceof ApiError && error.status === 401) this.#onUnauthorized()
  }

  async #read<Row>(
    controller: AbortController,
    request: ApiRequest<Row>,
    take: (rows: readonly Row[]) => void,
    expectedRows: number | undefined,
  ): Promise<boolean> {
    const { signal } = controller
    const tally: Tally = { rows: 0, bytes: 0 }
    this.#tallies.set(request, tally)
    this.#running.add(request)
    this.#setBusy(true, expectedRows)
    const answer = answerOf(this.#session.client, request, {
      signal,
      onProgress: ({ bytes }) => (tally.bytes = bytes),
      onWait: ({ error }) => {
        if (!signal.aborted) this.#status.textContent = `${error.message} Waiting …`
      },
    })
    try {
      let sinceMs = performance.now()
      for await (const rows of answer.batches()) {
        if (signal.aborted) break
        take(rows as Row[])
        tally.rows += rows.length
        this.#report('so far', expectedRows)
        // Without a pause, a fast response would leave no time to draw or to handle the Stop button.
        if (performance.now() - sinceMs < BUSY_MS) continue
        await new Promise((resolve) => setTimeout(resolve))
        sinceMs = performance.now()
      }
      signal.throwIfAborted()
      this.#end(request, '')
      return true
    } catch (error) {
      if (signal.reason === 'replaced') return false
      this.#end(request, signal.aborted ? 'until it was stopped' : '')
      if (signal.aborted) return false
      if (this.#tallies.size === 1 && tally.rows === 0) this.#status.textContent = ''
      this.showError(error)
      return false
    }
  }

  /** Ends one request; the last one hides the progress. */
  #end(request: ApiRequest, suffix: string): void {
    this.#running.delete(request)
    const isOver = this.#running.size === 0
    if (isOver) this.#setBusy(false)
    this.#report(isOver ? suffix : 'so far')
  }

  #report(suffix: string, expectedRows?: number): void {
    const tallies = [...this.#tallies.values()]
    const rows = tallies.reduce((sum, tally) => sum + tally.rows, 0)
    const bytes = tallies.reduce((sum, tally) => sum + tally.bytes, 0)
    this.#status.textContent = `${countText(rows)} rows, ${bytesText(bytes)} ${suffix}`.trim()
    if (suffix === '') this.#showDownloads()
    if (expectedRows !== undefined) this.#progress.value = Math.min(expectedRows, rows)
  }

  #setBusy(isBusy: boolean, expectedRows?: number): void {
    this.#stop.hidden = !isBusy
    this.#progress.hidden = !isBusy || expectedRows === undefined
    if (expectedRows !== undefined) {
      this.#progress.max = expectedRows
      this.#progress.value = 0
    }
  }

  #setRequests(requests: readonly ApiRequest[]): void {
    this.#requests = requests
    this.#choice.field.hidden = requests.length < 2
    const choices = requests.map(({ title }, index) => ({ value: String(index), text: title }))
    setChoices(this.#choice.select, choices, '0')
  }

  #choose(index: number): void {
    this.#chosen = index
    this.#showCode()
    this.#showDownloads()
  }

  #speak(language: Language): void {
    this.#language = language
    for (const [name, each] of this.#languages) each.setAttribute('aria-pressed', String(name === language))
    this.#showCode()
  }

  #showCode(): void {
    const request = this.#requests[this.#chosen]
    if (request === undefined) {
      this.#code.textContent = ''
      return
    }
    const { baseUrl, needsKey } = this.#session
    this.#code.textContent = snippet(request, this.#language, {
      baseUrl,
      needsKey,
      urlOf: (format) => urlOf(this.#session, request, format),
    })
  }

  #showDownloads(): void {
    const request = this.#requests[this.#chosen]
    const rows = request && this.#tallies.get(request)?.rows
    const links = request === undefined ? [] : downloadLinks(this.#session, request, rows ?? 0, this)
    this.#downloads.replaceChildren(...links)
  }

  async #copy(): Promise<void> {
    const isCopied = await copyText(this.#code)
    this.#status.textContent = isCopied ? 'Copied.' : 'Marked: copy it with Ctrl+C.'
  }
}
