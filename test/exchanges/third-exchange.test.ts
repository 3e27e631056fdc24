// A third exchange is a folder, an entry in shared/lob-sources.ts and a line in server/exchanges/registry.ts: a copy of the sources
// compiles with it, including tests and explorer. After its removal the sources are as before.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { inFullGear } from '../support/effort.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const FOLDERS = ['server', 'workers', 'shared', 'clients', 'explorer', 'bench', 'test']
const NAME = 'lunex'
const EXCHANGE = `server/exchanges/${NAME}`
const FILES = ['exchange.ts', 'feed.ts', 'frame.ts', 'names.ts']
/** The entry and the import of the folder, each inserted before an existing text. */
const LINES = [
  [
    'shared/lob-sources.ts',
    '} as const satisfies Readonly<Record<string, LobSourceNames>>',
    (names: string) => `  lunex: ${names},\n`,
  ],
  [
    'server/exchanges/registry.ts',
    'import { POLYMARKET } from',
    () =>
      `import { LUNEX } from ${JSON.stringify(`${EXCHANGE.replace('server/exchanges', '.')}/exchange.ts`)}\n`,
  ],
  [
    'server/exchanges/registry.ts',
    '} as const satisfies { readonly [Name in LobSource]: Exchange }',
    () => '  lunex: LUNEX,\n',
  ],
] as const

async function textsOf(root: string): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const folder of FOLDERS)
    for (const entry of await readdir(join(root, folder), { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      if (entry.isFile()) texts.set(path.slice(root.length), await readFile(path, 'latin1'))
    }
  return texts
}

test(
  'a third exchange needs a folder and lines in two files, and can be removed again',
  { skip: inFullGear },
  async (t) => {
    const root = join(await temporaryDirectory(t), '/')
    for (const name of [...FOLDERS, 'package.json', 'tsconfig.json'])
      await cp(join(ROOT, name), join(root, name), { recursive: true })
    await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
    const before = await textsOf(root)
    const change = async (path: string, from: string, to: string): Promise<void> => {
      const text = await readFile(join(root, path), 'utf8')
      assert.equal(text.split(from).length, 2, `${path} has one ${from}`)
      await writeFile(
        join(root, path),
        text.replace(from, () => to),
      )
    }
    const compile = (project: string, ...more: string[]) =>
      run(
        process.execPath,
        [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', join(root, project), ...more],
        { cwd: root },
      ).catch((error: { stdout: string }) => assert.fail(error.stdout))
    /** Does the same as `npm run clients:write`. */
    const writeClients = async (): Promise<void> => {
      await compile('.')
      await run(process.execPath, [join(root, 'dist/clients/build/main.js'), '--write'], { cwd: root })
    }
    const names = (await readFile(join(root, 'test/support/lunex/names.ts'), 'utf8'))
      .split('LobSourceNames = ')[1]!
      .trim()
    const inlined = names.replace('MARKET.test', '/^[a-z]{1,32}~\\d{4}-\\d{2}-\\d{2}~\\d{1,3}$/.test')

    await mkdir(join(root, EXCHANGE))
    for (const name of FILES) {
      const text = await readFile(join(root, 'test/support/lunex', name), 'utf8')
      await writeFile(join(root, EXCHANGE, name), text.replaceAll("'../../../server/", "'../../"))
    }
    for (const [path, place, lines] of LINES) await change(path, place, lines(inlined) + place)
    await writeClients()
    const wire = await readFile(join(root, 'clients/typescript/wire.ts'), 'utf8')
    assert.match(wire, /'kalshi' \| 'polymarket' \| 'lunex'/)
    await compile('explorer', '--noEmit')
    await compile('.', '--noEmit')

    for (const [path, place, lines] of LINES) await change(path, lines(inlined) + place, place)
    await rm(join(root, EXCHANGE), { recursive: true })
    await writeClients()
    assert.deepEqual(await textsOf(root), before)
  },
)
