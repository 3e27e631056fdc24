// Which parts of pieces have lines in common.

/** The groups of items that share a line, directly or through others, each in the order of `items`' first members. */
export function groupsOfShared<T>(
  items: readonly T[],
  linesOf: (item: T) => readonly { readonly key: number }[],
): readonly (readonly T[])[] {
  const groups = new Map<T, T[]>(items.map((item) => [item, [item]]))
  if (items.length < 2) return [...groups.values()]
  const ownerOf = new Map<number, T>()
  const into = new Map<T, T>()
  const rootOf = (item: T): T => {
    let root = item
    for (let next = into.get(root); next !== undefined; next = into.get(root)) root = next
    return root
  }
  for (const item of items) {
    for (const { key } of linesOf(item)) {
      const owner = ownerOf.get(key)
      if (owner === undefined) {
        ownerOf.set(key, item)
        continue
      }
      const [a, b] = [rootOf(owner), rootOf(item)]
      if (a === b) continue
      into.set(b, a)
      groups.get(a)!.push(...groups.get(b)!)
      groups.delete(b)
    }
  }
  return [...groups.values()]
}
