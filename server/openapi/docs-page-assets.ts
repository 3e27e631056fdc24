// Style and script of the page at /docs, as they stand in it.

export const DOCS_STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
h1 small, h2 span { color: #777; font-weight: normal }
h2 { font: 600 1.1rem ui-monospace, monospace; border-top: 1px solid #ddd; padding-top: 1.2rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid #eee }
input, select { font: inherit; width: 12rem; box-sizing: border-box }
pre { background: #f4f4f2; padding: .6rem; overflow: auto; max-height: 24rem; white-space: pre-wrap; overflow-wrap: anywhere }
b { color: #a40; font-weight: normal; font-size: .8rem }
small { color: #666 }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #16181a } pre { background: #202326 } th, td { border-color: #2c2f33 } a { color: #8bf }
}
`

/** Shows this much of an answer: a page is no place for half a million rows. */
export const DOCS_SCRIPT = `
const SHOWN_CHARACTERS = 20000
const base = location.protocol === 'file:' ? 'http://127.0.0.1:8080' : location.origin
for (const pre of document.querySelectorAll('pre[data-target]')) pre.textContent = "curl '" + base + pre.dataset.target + "'"
function targetOf(form) {
  let path = form.dataset.path
  const query = []
  for (const field of form.elements) {
    if (!field.name || field.value === '') continue
    const value = encodeURIComponent(field.value)
    if (field.dataset.in === 'path') path = path.replace('{' + field.name + '}', value)
    else query.push(field.name + '=' + value.replaceAll('%3A', ':').replaceAll('%2C', ','))
  }
  return path + (query.length ? '?' + query.join('&') : '')
}
async function readSome(response, controller) {
  if (!/json|csv|text/.test(response.headers.get('content-type') || '')) {
    controller.abort()
    return '(binary: use the curl line)'
  }
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (text.length < SHOWN_CHARACTERS) {
    const { done, value } = await reader.read()
    if (done) return text
    text += decoder.decode(value, { stream: true })
  }
  controller.abort()
  return text.slice(0, SHOWN_CHARACTERS) + '\\n(cut here: use the curl line)'
}
async function send(form) {
  const answer = form.querySelector('.answer')
  answer.hidden = false
  answer.textContent = '…'
  const key = document.getElementById('key').value
  const controller = new AbortController()
  try {
    const response = await fetch(base + targetOf(form), { headers: key ? { 'X-API-Key': key } : {}, signal: controller.signal })
    const head = [...response.headers].map(([name, value]) => name + ': ' + value).join('\\n')
    answer.textContent = response.status + ' ' + response.statusText + '\\n' + head + '\\n\\n' + (await readSome(response, controller))
  } catch (error) {
    answer.textContent = 'The request failed: ' + error.message
  }
}
for (const form of document.forms) {
  const show = () => { form.querySelector('.curl').textContent = "curl '" + base + targetOf(form) + "'" }
  form.addEventListener('input', show)
  form.addEventListener('submit', (event) => { event.preventDefault(); void send(form) })
  show()
}
`
