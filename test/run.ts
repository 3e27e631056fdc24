// Runs the tests, two files at a time, as Node's test runner does it: all of them, or those named
// (`npm test -- dist/test/http/access-log.test.js`). Options go to the runner.

import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { START_FLAGS } from './support/start-flags.ts'

const FILES_AT_ONCE = 2

function allTests(): string[] {
  const directory = fileURLToPath(new URL('.', import.meta.url))
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js'))
    .toSorted()
    .map((name) => join(directory, name))
}

const given = process.argv.slice(2)
const options = given.filter((argument) => argument.startsWith('--'))
const named = given.filter((argument) => !argument.startsWith('--'))
const runner = ['--test', `--test-concurrency=${FILES_AT_ONCE}`, ...options]
const files = named.length > 0 ? named : allTests()
const child = spawn(process.execPath, ['--enable-source-maps', ...START_FLAGS, ...runner, ...files], {
  stdio: 'inherit',
})
child.on('close', (code) => {
  process.exitCode = code ?? 1
})
