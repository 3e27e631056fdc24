// Guesses the intended word for a misspelt one.

/** If more than this share of its letters are wrong, a word is taken for another word. */
const TYPO_SHARE = 0.4

/** The choice that a word most likely misspells; undefined if it resembles none. */
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

/** Insertions, removals and replacements of letters that turn one word into the other (Levenshtein). */
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
