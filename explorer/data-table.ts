// The table below a plot: the plot's rows, one page at a time, with the row at the cursor marked.

import { button, element, headRow, scroller, tableRow } from './element.ts'
import { countText } from './number-text.ts'

export interface TableRows {
  readonly count: number
  /** The cells of a row as text, one for each column. */
  readonly cellsOf: (index: number) => readonly string[]
}

const PAGE_ROWS = 100

export class DataTable {
  readonly root: HTMLDetailsElement
  readonly #summary = element('summary')
  readonly #place = element('span', { role: 'status' })
  readonly #head = element('thead')
  readonly #body = element('tbody')
  readonly #caption: string
  #columns: readonly string[] = []
  #rows: TableRows = { count: 0, cellsOf: () => [] }
  #page = 0
  #current: number | null = null

  constructor(caption: string) {
    this.#caption = caption
    const pages = element(
      'div',
      { class: 'buttons' },
      button('Earlier rows', () => this.#turn(-1)),
      button('Later rows', () => this.#turn(1)),
      this.#place,
    )
    const table = element('table', {}, element('caption', {}, caption), this.#head, this.#body)
    this.root = element('details', { class: 'data-table' }, this.#summary, pages, scroller(caption, table))
    this.root.addEventListener('toggle', () => this.#show())
  }

  setRows(columns: readonly string[], rows: TableRows): void {
    this.#columns = columns
    this.#rows = rows
    this.#page = Math.min(this.#page, this.#lastPage)
    this.#summary.textContent = `${this.#caption}: table of ${countText(rows.count)} rows`
    this.#show()
  }

  /** Marks a row and turns to its page. */
  setCurrent(index: number | null): void {
    if (this.#current === index) return
    this.#current = index
    if (index !== null) this.#page = Math.floor(index / PAGE_ROWS)
    this.#show()
  }

  get #lastPage(): number {
    return Math.max(0, Math.ceil(this.#rows.count / PAGE_ROWS) - 1)
  }

  #turn(pages: -1 | 1): void {
    this.#page = Math.min(this.#lastPage, Math.max(0, this.#page + pages))
    this.#show()
  }

  #show(): void {
    // A closed table is not rendered.
    if (!this.root.open) return
    this.#head.replaceChildren(headRow(this.#columns))
    const first = this.#page * PAGE_ROWS
    const last = Math.min(this.#rows.count, first + PAGE_ROWS)
    const rows: HTMLTableRowElement[] = []
    for (let index = first; index < last; index += 1) {
      const [heading = '', ...cells] = this.#rows.cellsOf(index)
      rows.push(tableRow(heading, cells, { 'aria-current': index === this.#current ? 'true' : undefined }))
    }
    this.#body.replaceChildren(...rows)
    this.#place.textContent =
      this.#rows.count === 0
        ? 'no rows'
        : `rows ${countText(first + 1)} to ${countText(last)} of ${countText(this.#rows.count)}`
  }
}
