// Output for people: colours only on terminals, text wrapped to the width, and suggestions for misspelt words.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fitted, styleOf, wrapText } from '../../server/commands/terminal.ts'
import { closest } from '../../server/options/closest.ts'
import { bookcast } from '../support/program.ts'

const COMMANDS = ['serve', 'import', 'ingest', 'status', 'sync', 'compact', 'record', 'sample-data']

function stream(isTTY: boolean): NodeJS.WriteStream {
  return { isTTY } as NodeJS.WriteStream
}

test('uses colours only on a terminal that supports them, and not with NO_COLOR', () => {
  assert.equal(styleOf(stream(true), {}).red('no'), '\u001b[31mno\u001b[39m')
  assert.equal(styleOf(stream(true), { NO_COLOR: '' }).bold('no'), '\u001b[1mno\u001b[22m')
  for (const [tty, env] of [
    [false, {}],
    [true, { NO_COLOR: '1' }],
    [true, { TERM: 'dumb' }],
  ] as const)
    assert.equal(styleOf(stream(tty), env).red('no'), 'no')
})

test('suggests a word for a misspelt one only', () => {
  for (const [word, meant] of [
    ['serv', 'serve'],
    ['server', 'serve'],
    ['injest', 'ingest'],
    ['sample', 'sample-data'],
    ['publish', undefined],
    ['x', undefined],
    ['', undefined],
  ] as const)
    assert.equal(closest(word, COMMANDS), meant, word)
})

test('wraps text to a width without breaking words', () => {
  assert.equal(wrapText('one two three', 7), 'one two\nthree')
  assert.equal(wrapText('unbreakable', 4), 'unbreakable')
})

test('wraps the descriptions of a help text in their column', () => {
  const terminal = (columns: number) => ({ isTTY: true, columns }) as NodeJS.WriteStream
  const help = [
    'Usage: bookcast serve --lake <dir> [options] and so on, in a sentence without columns',
    '  --port <n>    TCP port, 0 for any free one, which is printed when it is known',
    '                also BOOKCAST_PORT, where there is no option and no line of a file',
    '  \u001b[1mserve\u001b[22m         serve',
    '',
  ].join('\n')
  assert.equal(fitted(help, stream(false)), help)
  assert.equal(fitted(help, terminal(120)), help)
  assert.deepEqual(fitted(help, terminal(44)).split('\n'), [
    'Usage: bookcast serve --lake <dir> [options]',
    'and so on, in a sentence without columns',
    '  --port <n>    TCP port, 0 for any free',
    '                one, which is printed when',
    '                it is known',
    '                also BOOKCAST_PORT, where',
    '                there is no option and no',
    '                line of a file',
    '  \u001b[1mserve\u001b[22m         serve',
    '',
  ])
})

test('errors for a wrong command or option suggest what to try next', async () => {
  const command = await bookcast(['serv'])
  assert.equal(command.code, 2)
  assert.equal(command.stderr, 'bookcast: there is no command "serv"\nDid you mean "bookcast serve"?\n')
  const option = await bookcast(['serve', '--lakes', '.'])
  assert.equal(option.code, 2)
  assert.match(option.stderr, /Unknown option '--lakes'[^]*\nDid you mean --lake\?\n"bookcast serve --help"/)
  const nothing = await bookcast([])
  assert.deepEqual([nothing.code, nothing.stdout], [2, ''])
  assert.match(nothing.stderr, /^Usage: bookcast <command>[^]*To begin:\n  bookcast serve --lake <dir>/)
  assert.ok(!nothing.stderr.includes('\u001b'))
})
