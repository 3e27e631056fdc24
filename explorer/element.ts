// Builds elements. Strings always become text nodes, never markup, whatever a market's name contains.

interface Attributes {
  readonly [name: string]: string | number | boolean | undefined
}

/** An element with attributes (`true`: present; false or undefined: not) and children; strings become text. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined && value !== false) made.setAttribute(key, value === true ? '' : String(value))
  made.append(...children)
  return made
}

export function button(
  text: string,
  onClick: (event: MouseEvent) => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  const made = element('button', { type: 'button', ...attributes }, text)
  made.addEventListener('click', onClick)
  return made
}

/** The head of a table with one row of names. */
export function tableHead(names: readonly string[]): HTMLTableSectionElement {
  return element('thead', {}, headRow(names))
}

export function headRow(names: readonly string[]): HTMLTableRowElement {
  return element('tr', {}, ...names.map((name) => element('th', { scope: 'col' }, name)))
}

/** A table row that begins with a heading cell. */
export function tableRow(
  heading: string | readonly Node[],
  cells: readonly string[],
  attributes: Attributes = {},
): HTMLTableRowElement {
  return element(
    'tr',
    attributes,
    element('th', { scope: 'row' }, ...(typeof heading === 'string' ? [heading] : heading)),
    ...cells.map((text) => element('td', {}, text)),
  )
}

/** A scrollable region around `content`, focusable so that the keyboard can scroll it. */
export function scroller(label: string, content: HTMLElement): HTMLDivElement {
  return element('div', { class: 'scroller', tabindex: 0, role: 'region', 'aria-label': label }, content)
}

/** @throws {Error} if the page has no element with this id */
export function pageElement(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`the page has no element ${id}`)
  return found
}

/** A drop-down list under a label. */
export function labelledSelect(
  label: string,
  onChange: (value: string) => void,
): { readonly field: HTMLLabelElement; readonly select: HTMLSelectElement } {
  const select = element('select')
  select.addEventListener('change', () => onChange(select.value))
  return { field: element('label', { class: 'field' }, element('span', {}, label), select), select }
}

export interface Choice {
  readonly value: string
  readonly text: string
}

/** Puts choices into a list. A value that is not among them is added, so that the user sees what is requested. */
export function setChoices(select: HTMLSelectElement, choices: readonly Choice[], value: string): void {
  const shown = choices.some((choice) => choice.value === value)
    ? choices
    : [...choices, { value, text: value }]
  select.replaceChildren(...shown.map((choice) => element('option', { value: choice.value }, choice.text)))
  select.value = value
  select.disabled = shown.length === 0
}
