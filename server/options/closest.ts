// A guess at what a misspelt word was meant to be.

/** A word with more wrong letters than this share is another word. */
const TYPO_SHARE = 0.4

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
