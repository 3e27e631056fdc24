// The explorer as files: the modules that the compiler made of its sources, uPlot from its package, style sheet and icon,
// all in one directory that is named by what is in it, and the page that names them. So every file but the page may be
// kept for ever.

import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = new URL('../../../', import.meta.url)
const SOURCES = new URL('explorer/', ROOT)
const COMPILED = fileURLToPath(new URL('dist/explorer-modules/', ROOT))
const SERVED = new URL('dist/site/explorer/', ROOT)
/** Its own module is not minified: this is the script that is, made a module. */
const PLOT_SCRIPT = 'uPlot.iife.min.js'
const PLOT = 'uPlot.js'
const PLOT_STYLE = 'uPlot.min.css'
const PLOT_IMPORT = /(from\s+)'uplot'/g
const OWN_FILES = ['explorer.css', 'icon.svg']
const HASH_DIGITS = 16

/** The compiled modules by their path, with the import of the plot library made one of a file. */
async function modules(): Promise<[string, string][]> {
  const entries = await readdir(COMPILED, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.js'))
    .map((entry) => join(entry.parentPath, entry.name).slice(COMPILED.length))
  return Promise.all(
    paths.toSorted().map(async (path): Promise<[string, string]> => {
      const text = await readFile(join(COMPILED, path), 'utf8')
      return [path, text.replaceAll(PLOT_IMPORT, `$1'${posix.relative(posix.dirname(path), PLOT)}'`)]
    }),
  )
}

async function plotFiles(): Promise<[string, string][]> {
  const place = dirname(createRequire(import.meta.url).resolve('uplot'))
  const read = (name: string): Promise<string> => readFile(join(place, name), 'utf8')
  return [
    [PLOT, `${await read(PLOT_SCRIPT)}\nexport default uPlot\n`],
    [PLOT_STYLE, await read(PLOT_STYLE)],
    ['uplot-license.txt', await read('../LICENSE')],
  ]
}

/** Writes what the server has at `/` for browsers. */
export async function writeExplorerFiles(): Promise<void> {
  const own = OWN_FILES.map(async (name): Promise<[string, string]> => [
    `explorer/${name}`,
    await readFile(new URL(name, SOURCES), 'utf8'),
  ])
  const files = [...(await modules()), ...(await plotFiles()), ...(await Promise.all(own))]
  const hash = createHash('sha256').update(JSON.stringify(files)).digest('hex').slice(0, HASH_DIGITS)
  for (const [path, text] of files) {
    const place = new URL(`${hash}/${path}`, SERVED)
    await mkdir(new URL('.', place), { recursive: true })
    await writeFile(place, text)
  }
  const scripts = files.map(([path]) => path).filter((path) => path.endsWith('.js'))
  const preloads = scripts.map((path) => `<link rel="modulepreload" href="explorer/${hash}/${path}">`)
  const page = await readFile(new URL('index.html', SOURCES), 'utf8')
  const text = page.replaceAll('{files}', `explorer/${hash}`).replace('{preloads}', preloads.join('\n'))
  await writeFile(new URL('index.html', SERVED), text)
}
