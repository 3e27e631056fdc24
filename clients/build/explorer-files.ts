// The explorer as files: one script, one style sheet and an icon in a directory named by their digest, and the page that refers to
// it. So every file but the page can be cached forever. The compiler checks and builds the modules. They are bundled into one file,
// because a browser requests only a few files at a time, and some seventy small ones delayed the first picture more than all its
// data. The source map beside it has the modules with their comments; browsers request it only when the developer tools are open.

import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type BuildOptions } from 'esbuild'

const ROOT = new URL('../../../', import.meta.url)
const SOURCES = new URL('explorer/', ROOT)
const ENTRY = fileURLToPath(new URL('dist/explorer-modules/explorer/main.js', ROOT))
const SERVED = new URL('dist/site/explorer/', ROOT)
const HASH_DIGITS = 16

const OPTIONS: BuildOptions = {
  bundle: true,
  minify: true,
  write: false,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  // Generated names would change with every version.
  legalComments: 'none',
  absWorkingDir: fileURLToPath(ROOT),
  logLevel: 'warning',
}

/** The files built from an entry and all its imports, by name. */
async function bundled(name: string, options: BuildOptions): Promise<[name: string, text: string][]> {
  // Source paths are relative to the output file's location.
  const outfile = fileURLToPath(new URL(name, ROOT))
  const { outputFiles } = await build({ ...OPTIONS, ...options, outfile, write: false })
  return outputFiles.map(({ path, text }) => [basename(path), text])
}

/** The served files by name. */
async function explorerFiles(): Promise<[name: string, text: string][]> {
  const plot = dirname(createRequire(import.meta.url).resolve('uplot'))
  const styles = [
    join(plot, 'uPlot.min.css'),
    ...['theme.css', 'explorer.css'].map((name) => fileURLToPath(new URL(name, SOURCES))),
  ]
  const style = styles.map((path) => `@import ${JSON.stringify(path)};`).join('\n')
  return [
    ...(await bundled('explorer.js', { entryPoints: [ENTRY], sourcemap: 'linked' })),
    ...(await bundled('explorer.css', {
      stdin: { contents: style, loader: 'css', resolveDir: fileURLToPath(SOURCES) },
    })),
    ['icon.svg', await readFile(new URL('icon.svg', SOURCES), 'utf8')],
    ['uplot-license.txt', await readFile(join(plot, '../LICENSE'), 'utf8')],
  ]
}

/** Writes the files that the server serves at `/` to browsers. */
export async function writeExplorerFiles(): Promise<void> {
  const files = await explorerFiles()
  const hash = createHash('sha256').update(JSON.stringify(files)).digest('hex').slice(0, HASH_DIGITS)
  await mkdir(new URL(`${hash}/`, SERVED), { recursive: true })
  for (const [name, text] of files) await writeFile(new URL(`${hash}/${name}`, SERVED), text)
  const page = await readFile(new URL('index.html', SOURCES), 'utf8')
  await writeFile(new URL('index.html', SERVED), page.replaceAll('{files}', `explorer/${hash}`))
}
