// The page: reads the address, fills in missing choices, opens the view, and writes the user's choices into the address.

import { openBookView } from './book-view.ts'
import { openCandleView } from './candle-view.ts'
import { Catalogue } from './catalogue.ts'
import { openDataView } from './data-view.ts'
import { openDayView } from './day-view.ts'
import { element, pageElement } from './element.ts'
import { showKeyForm } from './key-form.ts'
import { RequestPanel } from './request-panel.ts'
import { completed } from './selection.ts'
import { SelectionBar } from './selection-bar.ts'
import { sampleText } from './service-facts.ts'
import { Session } from './session.ts'
import { onSchemeChange } from './theme.ts'
import type { OpenView, View } from './view.ts'
import { hasSameData, readAddress, type ViewName, type ViewState, VIEWS, writeAddress } from './view-state.ts'
import { openWeatherView } from './weather-view.ts'
import { missingNote, missingRecording, missingView } from './what-is-missing.ts'

const OPENERS: Readonly<Record<ViewName, OpenView>> = {
  day: openDayView,
  book: openBookView,
  weather: openWeatherView,
  candles: openCandleView,
  data: openDataView,
}
const NAMES: Readonly<Record<ViewName, string>> = {
  day: 'Day',
  book: 'Book',
  weather: 'Weather and market',
  candles: 'Candles',
  data: 'Data',
}
/** /health is requested this long after the first view was opened, so that it does not delay the view. */
const SAMPLES_AFTER_MS = 500
/** The address is updated once the cursor has not moved for this long. */
const NOTE_AFTER_MS = 200

/** Another view gets the automatic interval: an interval that suits one view may exceed the server's limits in another. */
function inView(state: ViewState, view: ViewName): ViewState {
  return view === state.view ? state : { ...state, view, interval: '' }
}

class Explorer {
  readonly #session = new Session()
  readonly #panel = new RequestPanel(pageElement('request'), pageElement('alert'), this.#session, () =>
    this.#askForKey(),
  )
  readonly #bar = new SelectionBar(pageElement('selection'), (patch) => this.#open(patch))
  readonly #host = pageElement('view')
  #catalogue: Promise<Catalogue> | undefined
  #state: ViewState = readAddress(location.hash)
  #view: View | undefined
  #left = new AbortController()
  #noteTimer: ReturnType<typeof setTimeout> | undefined

  start(): void {
    pageElement('views').replaceChildren(
      ...VIEWS.map((view) => {
        const link = element('a', { href: writeAddress(inView(this.#state, view)) }, NAMES[view])
        link.addEventListener('click', (event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return
          event.preventDefault()
          this.#open({ view })
        })
        return element('li', {}, link)
      }),
    )
    // The fragment holds the state, so the link must not change it.
    pageElement('skip').addEventListener('click', (event) => {
      event.preventDefault()
      this.#host.focus()
    })
    addEventListener('popstate', () => this.#onAddress())
    onSchemeChange(() => void this.#show(), new AbortController().signal)
    void this.#show().then(() => setTimeout(() => void this.#markSamples(), SAMPLES_AFTER_MS))
  }

  /** Opens another view or other data, as a new entry of the browser's history. */
  #open(patch: Partial<ViewState>): void {
    this.#flushNote()
    this.#state = { ...inView(this.#state, patch.view ?? this.#state.view), ...patch }
    history.pushState(null, '', writeAddress(this.#state))
    void this.#show()
  }

  /** Writes the window and the cursor into the current address. */
  #note(patch: Partial<ViewState>): void {
    this.#state = { ...this.#state, ...patch }
    clearTimeout(this.#noteTimer)
    this.#noteTimer = setTimeout(() => this.#flushNote(), NOTE_AFTER_MS)
  }

  #flushNote(): void {
    clearTimeout(this.#noteTimer)
    history.replaceState(null, '', writeAddress(this.#state))
  }

  #onAddress(): void {
    clearTimeout(this.#noteTimer)
    const state = readAddress(location.hash)
    const isSame = hasSameData(state, this.#state)
    this.#state = state
    if (isSame && this.#view !== undefined) this.#view.follow(state)
    else void this.#show()
  }

  async #show(): Promise<void> {
    this.#left.abort()
    const left = new AbortController()
    this.#left = left
    this.#view?.close()
    this.#view = undefined
    this.#panel.leave()
    this.#markView()
    try {
      // Undefined at first and after a failure.
      this.#catalogue ??= Catalogue.load(this.#session)
      const catalogue = await this.#catalogue
      // The next view tries again: the store may be available by then.
      if (!catalogue.isNamed) this.#catalogue = undefined
      const selection = await completed(this.#state, catalogue)
      if (left.signal.aborted) return
      this.#state = selection.state
      this.#flushNote()
      this.#bar.show(selection, catalogue)
      this.#markView()
      this.#host.replaceChildren()
      const open = (patch: Partial<ViewState>): void => this.#open(patch)
      const missing = missingView(selection.state, catalogue)
      if (missing !== null) {
        this.#panel.begin([])
        this.#panel.report('')
        this.#host.append(missingNote(missing, open))
        return
      }
      const unrecorded = missingRecording(selection.state, catalogue)
      if (unrecorded !== null) this.#host.append(missingNote(unrecorded, open))
      this.#view = OPENERS[selection.state.view]({
        host: this.#host,
        ...selection,
        catalogue,
        session: this.#session,
        panel: this.#panel,
        note: (patch) => this.#note(patch),
        open,
        signal: left.signal,
      })
    } catch (error) {
      this.#catalogue = undefined
      if (!left.signal.aborted) this.#panel.showError(error)
    }
  }

  #markView(): void {
    document.title = `${NAMES[this.#state.view]} · Bookcast`
    for (const [index, link] of pageElement('views').querySelectorAll('a').entries()) {
      const view = VIEWS[index] ?? 'day'
      link.setAttribute('href', writeAddress(inView(this.#state, view)))
      if (view === this.#state.view) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
  }

  /** Marks generated sample data in every view. */
  async #markSamples(): Promise<void> {
    const health = await this.#session.client.health().catch(() => null)
    const text = health === null ? '' : sampleText(health)
    const mark = pageElement('sample')
    mark.textContent = text
    mark.hidden = text === ''
  }

  #askForKey(): void {
    showKeyForm(pageElement('key'), (key) => {
      try {
        this.#session.useKey(key)
      } catch (error) {
        this.#panel.showError(error)
        this.#askForKey()
        return
      }
      this.#catalogue = undefined
      void this.#show()
    })
  }
}

new Explorer().start()
