// Building and running the program: the build does only what is needed, and the documented ways to run a command run the
// checkout's own program.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const { version }: { version: string } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** A checkout with the real build script and a fake compiler, which counts its runs and fails if the file `fail` exists. */
function checkout(root: string): {
  build: () => Promise<unknown>
  compilations: () => number
  write: (path: string) => void
} {
  const write = (path: string, text = 'export {}\n'): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    appendFileSync(join(root, path), text)
  }
  for (const folder of ['bench', 'clients', 'explorer', 'server', 'shared', 'test', 'workers'])
    write(`${folder}/a.ts`)
  for (const name of ['package-lock.json', 'tsconfig.json']) write(name, '{}')
  write('package.json', JSON.stringify({ type: 'module', scripts: { compile: 'node compile.js' } }))
  write(
    'compile.js',
    `import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
rmSync('dist', { recursive: true, force: true })
appendFileSync('compilations', 'x')
if (existsSync('fail')) process.exit(3)
mkdirSync('dist/clients/build', { recursive: true })
writeFileSync('dist/clients/build/main.js', '')
`,
  )
  copyFileSync(join(ROOT, 'build.mjs'), join(root, 'build.mjs'))
  return {
    build: () => run(process.execPath, [join(root, 'build.mjs')]),
    compilations: () => readFileSync(join(root, 'compilations'), 'utf8').length,
    write,
  }
}

test('builds once, and again only when a source has changed', async (t) => {
  const { build, compilations, write } = checkout(await temporaryDirectory(t))
  await build()
  await build()
  assert.equal(compilations(), 1)
  write('server/deep/b.ts')
  await build()
  await build()
  assert.equal(compilations(), 2)
})

test('repeats an interrupted build', async (t) => {
  const root = await temporaryDirectory(t)
  const { build, compilations, write } = checkout(root)
  write('fail')
  await assert.rejects(build(), { code: 3 })
  writeFileSync(
    join(root, 'compile.js'),
    readFileSync(join(root, 'compile.js'), 'utf8').replace("'fail'", "'no'"),
  )
  await build()
  await build()
  assert.equal(compilations(), 2)
})

test('"npm run -s bookcast --" prints what the program prints, and nothing else', async () => {
  // Skips the pre-script, which would rebuild a checkout that was compiled by hand while other tests use it.
  const { stdout } = await run('npm', ['run', '-s', '--ignore-scripts', 'bookcast', '--', '--version'], {
    cwd: ROOT,
  })
  assert.equal(stdout, `${version}\n`)
})

test('a global installation registers the command', async (t) => {
  const prefix = await temporaryDirectory(t)
  await run('npm', ['install', '-g', '--ignore-scripts', '--offline', '--prefix', prefix, ROOT])
  const { stdout } = await run(join(prefix, 'bin', 'bookcast'), ['--version'])
  assert.equal(stdout, `${version}\n`)
})
