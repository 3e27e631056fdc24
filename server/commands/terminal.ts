// Formats text for the user. Colours are used only on a terminal that supports them, unless NO_COLOR is set (no-color.org).

import { stripVTControlCharacters, styleText } from 'node:util'
import type { CommandIo } from './command.ts'

export interface Style {
  readonly bold: (text: string) => string
  readonly red: (text: string) => string
  readonly dim: (text: string) => string
}

/** Whether a stream is a terminal that shows colours. */
function showsColours(stream: CommandIo['stdout'], env: NodeJS.ProcessEnv): boolean {
  const isRefused = (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb'
  return stream.isTTY && !isRefused
}

/** Functions that style text; without colour support they return it unchanged. */
export function styleOf(stream: CommandIo['stdout'], env: NodeJS.ProcessEnv): Style {
  const isColoured = showsColours(stream, env)
  const mark = (format: keyof Style) => {
    return (text: string): string => (isColoured ? styleText(format, text, { validateStream: false }) : text)
  }
  return { bold: mark('bold'), red: mark('red'), dim: mark('dim') }
}

/** The width of a text in columns; escape sequences have none. */
function columnsOf(text: string): number {
  return stripVTControlCharacters(text).length
}

/** Wraps text at spaces into lines of at most `width` columns. */
export function wrapText(text: string, width: number): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && columnsOf(line) + 1 + columnsOf(word) > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].join('\n')
}

/** On a narrower terminal, lines are not wrapped here; the terminal breaks them. */
const WIDTH_MIN = 40
/** The minimum width of a description beside its option; with less space, only the indent is kept. */
const DESCRIPTION_MIN = 24
/** The part before the text of a line: its indent and, in a list of options, the option and the spaces after it. */
const LINE_HEAD = /^(\s*\S.*?\s{2,})(?=\S)/

/** Wraps the lines of a help text to the width of the terminal, with a hanging indent. Elsewhere returns it unchanged. */
export function fitted(text: string, { isTTY, columns }: CommandIo['stdout']): string {
  if (!isTTY || !(columns >= WIDTH_MIN)) return text
  return text
    .split('\n')
    .map((line) => (columnsOf(line) <= columns ? line : fittedLine(line, columns)))
    .join('\n')
}

/** Writes a help text and returns the exit code. */
export function showHelp(text: string, stdout: CommandIo['stdout']): number {
  stdout.write(fitted(text, stdout))
  return 0
}

function fittedLine(line: string, columns: number): string {
  const indent = /^\s*/.exec(line)?.[0] ?? ''
  const whole = LINE_HEAD.exec(line)?.[0] ?? indent
  const head = columns - columnsOf(whole) >= DESCRIPTION_MIN ? whole : indent
  const hanging = ' '.repeat(columnsOf(head))
  const text = wrapText(line.slice(head.length).replaceAll(/\s+/g, ' '), columns - columnsOf(head))
  return head + text.replaceAll('\n', `\n${hanging}`)
}
