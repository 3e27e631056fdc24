// Chooses a UTC date. Days without recordings are disabled, unless the series has no recordings at all.

import { addDays, utcDateStartMs } from '../shared/utc-date.ts'
import { button, element } from './element.ts'
import { type DateSpan, isRecorded, monthAfter, monthWeeks, recordedNeighbour } from './recorded-days.ts'
import { shortened } from './strikes.ts'

/** Limits the text of an invalid date. */
const DATE_CHARACTERS_MAX = 20
const WEEKDAYS = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su']
const ARROWS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 }

/** The conditions of those dates of a month whose books are not completely known. */
type ConditionsOf = (month: string) => Promise<ReadonlyMap<string, string>>

export class Calendar {
  readonly root: HTMLElement
  readonly #onChange: (date: string) => void
  readonly #toggle: HTMLButtonElement
  readonly #before: HTMLButtonElement
  readonly #after: HTMLButtonElement
  readonly #popup = element('div', {
    class: 'calendar',
    role: 'dialog',
    'aria-label': 'Choose a date',
    hidden: true,
  })
  #spans: readonly DateSpan[] = []
  #date = ''
  #month = ''
  #conditionsOf: ConditionsOf = async () => new Map()

  constructor(onChange: (date: string) => void) {
    this.#onChange = onChange
    this.#toggle = button('', () => this.#open(this.#popup.hidden !== false), {
      'aria-expanded': 'false',
      class: 'date',
    })
    this.#before = button('◀', () => this.#step(-1), { 'aria-label': 'Recorded day before' })
    this.#after = button('▶', () => this.#step(1), { 'aria-label': 'Recorded day after' })
    const row = element('div', { class: 'buttons' }, this.#before, this.#toggle, this.#after)
    this.root = element(
      'div',
      { class: 'field', role: 'group', 'aria-label': 'Date' },
      element('span', {}, 'Date (UTC)'),
      row,
      this.#popup,
    )
    this.root.addEventListener('keydown', (event) => this.#onKey(event))
    document.addEventListener('pointerdown', ({ target }) => {
      if (target instanceof Node && !this.root.contains(target)) this.#open(false)
    })
  }

  show(date: string, spans: readonly DateSpan[], conditionsOf: ConditionsOf): void {
    this.#date = date
    this.#conditionsOf = conditionsOf
    this.#spans = spans
    this.#toggle.textContent = date === '' ? 'no recordings' : shortened(date, DATE_CHARACTERS_MAX)
    this.#before.disabled = this.#neighbour(-1) === undefined
    this.#after.disabled = this.#neighbour(1) === undefined
    this.#popup.hidden = true
    this.#toggle.setAttribute('aria-expanded', 'false')
  }

  #step(direction: -1 | 1): void {
    const date = this.#neighbour(direction)
    if (date !== undefined) this.#onChange(date)
  }

  #neighbour(direction: -1 | 1): string | undefined {
    if (this.#spans.length > 0) return recordedNeighbour(this.#spans, this.#date, direction)
    return utcDateStartMs(this.#date) === undefined ? undefined : addDays(this.#date, direction)
  }

  #open(isOpen: boolean): void {
    if (isOpen === !this.#popup.hidden) return
    this.#popup.hidden = !isOpen
    this.#toggle.setAttribute('aria-expanded', String(isOpen))
    if (!isOpen) return
    const last = this.#spans.at(-1)?.[1] ?? new Date().toISOString().slice(0, 10)
    this.#showMonth((utcDateStartMs(this.#date) === undefined ? last : this.#date).slice(0, 7))
    const current = this.#popup.querySelector<HTMLElement>('[aria-current]:enabled')
    const first = this.#popup.querySelector<HTMLElement>('td button:enabled')
    const target = current ?? first
    target?.focus()
  }

  #showMonth(month: string): void {
    this.#month = month
    const turn = (months: -1 | 1, text: string, label: string): HTMLButtonElement =>
      button(
        text,
        () => {
          this.#showMonth(monthAfter(this.#month, months))
          this.#popup.querySelector<HTMLElement>(`[aria-label="${label}"]`)?.focus()
        },
        { 'aria-label': label },
      )
    const head = element(
      'div',
      { class: 'buttons' },
      turn(-1, '◀', 'Month before'),
      element('strong', { 'aria-live': 'polite' }, month),
      turn(1, '▶', 'Month after'),
    )
    const weekdays = WEEKDAYS.map((name) => element('th', { scope: 'col' }, name))
    const weeks = monthWeeks(month).map((week) => element('tr', {}, ...week.map((date) => this.#cell(date))))
    const table = element(
      'table',
      {},
      element(
        'caption',
        { class: 'unseen' },
        this.#spans.length > 0 ? `Days of ${month} with recordings` : `Days of ${month}`,
      ),
      element('thead', {}, element('tr', {}, ...weekdays)),
      element('tbody', {}, ...weeks),
    )
    this.#popup.replaceChildren(head, table)
    if (this.#spans.length > 0) void this.#markConditions(month, table)
  }

  /** Marks days in this table only: when the response arrives, another series may be shown. If the request fails, marks none. */
  async #markConditions(month: string, table: HTMLElement): Promise<void> {
    const conditions = await this.#conditionsOf(month).catch(() => new Map<string, string>())
    for (const [date, condition] of conditions) {
      const day = table.querySelector<HTMLElement>(`td [aria-label="${date}"]`)
      day?.setAttribute('title', condition)
      day?.classList.add(condition)
    }
  }

  #cell(date: string | null): HTMLTableCellElement {
    if (date === null) return element('td')
    const day = button(
      String(Number(date.slice(8))),
      () => {
        this.#open(false)
        this.#toggle.focus()
        this.#onChange(date)
      },
      {
        disabled: this.#spans.length > 0 && !isRecorded(this.#spans, date),
        'aria-label': date,
        ...(date === this.#date ? { 'aria-current': 'date' } : {}),
      },
    )
    return element('td', {}, day)
  }

  #onKey(event: KeyboardEvent): void {
    if (event.key === 'Escape' && !this.#popup.hidden) {
      this.#open(false)
      this.#toggle.focus()
      return
    }
    const step = ARROWS[event.key]
    const days = [...this.#popup.querySelectorAll<HTMLButtonElement>('td button')]
    const at = days.findIndex((day) => day === document.activeElement)
    if (step === undefined || at === -1) return
    event.preventDefault()
    for (let next = at + step; next >= 0 && next < days.length; next += step)
      if (days[next]?.disabled === false) {
        days[next]?.focus()
        return
      }
  }
}
