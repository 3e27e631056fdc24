// Starts the viewer on this server's own description. It changes two things: the first example request of each endpoint
// stands in its form, ready to be sent, and of an answer no more is read than a page can show.

/* global SwaggerUIBundle */

const SHOWN_BYTES = 200_000

/** Puts the values of the first example into the parameters, and takes out all other examples. */
function withExample(path, operation) {
  const target = operation['x-examples']?.[0]?.target ?? path
  const [examplePath, query = ''] = target.split('?')
  const values = new URLSearchParams(query)
  const inPath =
    new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`).exec(examplePath)?.groups ?? {}
  for (const parameter of operation.parameters) {
    delete parameter.example
    const value = parameter.in === 'path' ? inPath[parameter.name] : values.get(parameter.name)
    if (value === undefined || value === null) continue
    if (parameter.schema.type === 'array') parameter.example = value.split(',')
    else parameter.example = parameter.schema.type === 'integer' ? Number(value) : decodeURIComponent(value)
  }
}

/** An answer that is cut where it gets too long to be shown. */
async function fetchSome(address, init) {
  const response = await fetch(address, init)
  const type = response.headers.get('content-type') ?? ''
  if (!/json|csv|text/.test(type)) {
    await response.body?.cancel()
    return new Response('(not text: use the curl line)', {
      status: response.status,
      headers: { 'Content-Type': 'text/plain' },
    })
  }
  const reader = response.body.getReader()
  const pieces = []
  let bytes = 0
  let isCut = false
  while (!isCut) {
    const { done, value } = await reader.read()
    if (done) break
    pieces.push(value)
    bytes += value.length
    isCut = bytes > SHOWN_BYTES
  }
  if (!isCut) return new Response(new Blob(pieces), { status: response.status, headers: response.headers })
  await reader.cancel()
  const text = new TextDecoder().decode(await new Blob(pieces).slice(0, SHOWN_BYTES).arrayBuffer())
  // Cut JSON is no JSON any more.
  return new Response(`${text}\n(cut here: use the curl line)`, {
    status: response.status,
    headers: { 'Content-Type': 'text/plain' },
  })
}

/** Resolves when an element of the page's head has loaded what it names. */
function loaded(element) {
  return new Promise((resolve, reject) => {
    element.addEventListener('load', resolve)
    element.addEventListener('error', () => reject(new Error('the viewer cannot be loaded')))
    document.head.append(element)
  })
}

async function show() {
  // The list of endpoints is drawn first: running the viewer keeps a slow machine busy for seconds.
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
  const style = Object.assign(document.createElement('link'), {
    rel: 'stylesheet',
    href: 'docs/swagger-ui.css',
  })
  const script = Object.assign(document.createElement('script'), { src: 'docs/swagger-ui-bundle.js' })
  await Promise.all([loaded(style), loaded(script)])
  const description = await (await fetch('openapi.json')).json()
  // A proxy may have put the server behind a path, which the server does not know.
  description.servers = [{ url: new URL('.', location.href).pathname }]
  for (const [path, { get }] of Object.entries(description.paths)) withExample(path, get)
  SwaggerUIBundle({
    spec: description,
    dom_id: '#viewer',
    presets: [SwaggerUIBundle.presets.apis],
    deepLinking: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    defaultModelsExpandDepth: -1,
    supportedSubmitMethods: ['get'],
    requestInterceptor: (request) => Object.assign(request, { userFetch: fetchSome }),
  })
}

show().catch((error) => {
  document.querySelector('#viewer').prepend(`The forms cannot be shown: ${error.message}`)
})
