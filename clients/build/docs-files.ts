// The documentation as files: the viewer, copied from its package, and the guides, written in Markdown.

import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { marked } from 'marked'
import type { ClientEndpoint } from './declared-endpoints.ts'

const ROOT = new URL('../../../', import.meta.url)
const SOURCES = new URL('server/site/', ROOT)
const GUIDES = new URL('guides/', SOURCES)
const THEME = new URL('explorer/theme.css', ROOT)
const SERVED = new URL('dist/site/docs/', ROOT)
const VIEWER_FILES = ['swagger-ui-bundle.js', 'swagger-ui.css']

interface Guide {
  readonly name: string
  readonly title: string
  readonly html: string
}

/** The guides, ordered by file name. Addresses omit the leading number of the name. */
async function readGuides(): Promise<Guide[]> {
  const names = (await readdir(GUIDES)).filter((name) => name.endsWith('.md')).toSorted()
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, GUIDES), 'utf8')
      const title = /^# (.+)$/m.exec(text)?.[1]
      if (title === undefined) throw new Error(`the guide ${name} has no title`)
      return {
        name: name.replace(/^\d+-/, '').replace(/\.md$/, ''),
        title,
        html: await marked.parse(text, { gfm: true }),
      }
    }),
  )
}

function page(
  title: string,
  body: string,
  guides: readonly Guide[],
  more: { readonly isGuide: boolean },
): string {
  // Relative to the page, so that a proxy may serve the server under a path prefix.
  const root = more.isGuide ? '../../' : './'
  const link = (address: string, text: string): string =>
    `<a href="${root}${address}"${text === title ? ' aria-current="page"' : ''}>${text}</a>`
  const links = guides.map((guide) => link(`docs/guides/${guide.name}`, guide.title))
  const viewer = [
    '<link rel="preload" href="docs/swagger-ui-bundle.js" as="script">',
    '<link rel="preload" href="docs/swagger-ui.css" as="style">',
    '<link rel="preload" href="openapi.json" as="fetch" crossorigin>',
  ].join('')
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Bookcast</title><link rel="icon" href="data:,">${more.isGuide ? '' : viewer}<link rel="stylesheet" href="${root}docs/docs.css"><script type="module" src="${root}docs/page.js"></script></head>
<body>
<header><strong>Bookcast</strong><a id="explorer" href="${root}">Explorer</a>${link('docs', 'API')}${links.join('')}
<a href="${root}clients/bookcast.py">Python client</a><a href="${root}clients/bookcast.js">TypeScript client</a></header>
${body}
</body></html>
`
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
}

/** An endpoint as one line. Its link opens it in the viewer, even if the viewer loads after the click. */
function endpointLine({ path, summary, parameters, anchor }: ClientEndpoint): string {
  const names = parameters.map(({ name }) => `<code>${escaped(name)}</code>`).join(' ')
  return `<li><a href="docs#${escaped(encodeURI(anchor))}"><code>GET ${escaped(path)}</code></a> ${escaped(summary)}
${names === '' ? '' : `<br><small>${names}</small>`}</li>`
}

/**
 * The endpoints as a list, which the viewer replaces. The viewer is half a megabyte, compressed, and takes seconds to start on a
 * busy or slow machine. A reader who looks for a path need not wait for it, nor have JavaScript.
 */
function viewerBody(endpoints: readonly ClientEndpoint[]): string {
  return `<main><div id="viewer"><ul class="endpoints">
${endpoints.map(endpointLine).join('\n')}
</ul><p>The forms to try them are being loaded … All of it as files: <a href="openapi.json">openapi.json</a>,
<a href="llms.txt">llms.txt</a>.</p></div></main>
<noscript><p>The forms need JavaScript; <a href="llms.txt">llms.txt</a> says the same as text.</p></noscript>
<script type="module" src="docs/docs.js"></script>`
}

/** Writes the files that the server serves at /docs. */
export async function writeDocsFiles(endpoints: readonly ClientEndpoint[]): Promise<void> {
  const guides = await readGuides()
  await mkdir(new URL('guides/', SERVED), { recursive: true })
  const viewer = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
  for (const name of VIEWER_FILES) await cp(join(viewer, name), fileURLToPath(new URL(name, SERVED)))
  await cp(join(viewer, 'LICENSE'), fileURLToPath(new URL('swagger-ui-license.txt', SERVED)))
  for (const name of ['docs.js', 'page.js']) await cp(new URL(`docs/${name}`, SOURCES), new URL(name, SERVED))
  const styles = [THEME, new URL('docs/docs.css', SOURCES)].map((file) => readFile(file, 'utf8'))
  await writeFile(new URL('docs.css', SERVED), (await Promise.all(styles)).join(''))
  await writeFile(
    new URL('index.html', SERVED),
    page('API', viewerBody(endpoints), guides, { isGuide: false }),
  )
  for (const { name, title, html } of guides) {
    const body = `<main class="guide">${html}</main>`
    await writeFile(new URL(`guides/${name}.html`, SERVED), page(title, body, guides, { isGuide: true }))
  }
}
