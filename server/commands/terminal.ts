// How text for people looks: colours only where a terminal shows them and nobody has said NO_COLOR (no-color.org), and a
// guess at what a misspelt word was meant to be.

import type { CommandIo } from './command.ts'

const BOLD = ['1', '22'] as const
const RED = ['31', '39'] as const
const DIM = ['2', '22'] as const
/** A word with more wrong letters than this share is another word. */
const TYPO_SHARE = 0.4

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

/** Functions that mark text, or leave it as it is where marks would only be seen as letters. */
export function styleOf(stream: CommandIo['stdout'], env: NodeJS.ProcessEnv): Style {
  const isColoured = showsColours(stream, env)
  const mark = ([begin, end]: readonly [string, string]) => {
    return (text: string): string => (isColoured ? `\u001b[${begin}m${text}\u001b[${end}m` : text)
  }
  return { bold: mark(BOLD), red: mark(RED), dim: mark(DIM) }
}

/** The choice that a word is most likely a misspelling of; undefined when it resembles none. */
export function closest(word: string, choices: Iterable<string>): string | undefined {
  let best: string | undefined
  let bestDistance = Math.floor(word.length * TYPO_SHARE) + 1
  for (const choice of choices) {
    const distance = choice.startsWith(word) && word.length > 1 ? 1 : editDistance(word, choice)
    if (distance >= bestDistance) continue
    best = choice
    bestDistance = distance
  }
  return best
}

/** Insertions, removals and replacements of letters that make one word of the other (Levenshtein). */
function editDistance(first: string, second: string): number {
  let row = Array.from({ length: second.length + 1 }, (_, index) => index)
  for (const [index, letter] of Array.from(first).entries()) {
    const next = [index + 1]
    for (const [other, otherLetter] of Array.from(second).entries()) {
      const replaced = (row[other] ?? 0) + (letter === otherLetter ? 0 : 1)
      next.push(Math.min(replaced, (row[other + 1] ?? 0) + 1, (next[other] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** Words in lines of at most `width` characters. */
export function wrapText(text: string, width: number): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].join('\n')
}
