// Asks the user for an API key if the server requires one.

import { element } from './element.ts'

/** Shows the form; `onKey` receives the typed key. */
export function showKeyForm(root: HTMLElement, onKey: (key: string) => void): void {
  const input = element('input', {
    type: 'password',
    autocomplete: 'off',
    required: true,
    spellcheck: 'false',
  })
  const form = element(
    'form',
    { class: 'key-form', 'aria-label': 'API key' },
    element('label', { class: 'field' }, element('span', {}, 'API key'), input),
    element('button', { type: 'submit' }, 'Use it'),
    element(
      'p',
      { class: 'note' },
      'This server wants a key. It is kept until this page is left, and nowhere else.',
    ),
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    root.replaceChildren()
    onKey(input.value)
  })
  root.replaceChildren(form)
  input.focus()
}
