// Order-book files of a date with raw segments, where no side's manifest stands above the other's.

import { coversLess } from '../lake/lake-file-facts.ts'
import type { DateView } from './date-view.ts'
import { ObjectChanged } from './object-store.ts'
import type { RawTransfers } from './raw-transfers.ts'
import { factsOf } from './replacement.ts'

/** One file of a date with equal manifests; false when both sides differ and neither is known to be right. */
export async function fillFile(transfers: RawTransfers, view: DateView, key: string): Promise<boolean> {
  const { isPush, notes } = transfers
  const [own, other] = [view.local.files.get(key), view.remote.files.get(key)]
  const isOpen = transfers.isOpen(view.date)
  if (own === undefined) {
    // Old order-book files may have been pruned in the lake that pushes.
    if (!isPush || isOpen) await transfers.copy(key, 'pull')
    return true
  }
  if (other === undefined) {
    if (isPush) await transfers.copy(key, 'push')
    return true
  }
  if (notes.isEqual(key, own, other)) return true
  const change = isPush ? notes.changeOf(key, own, other) : 'both'
  const isJudged = change === 'both' && (isOpen || view.counting.size === 0)
  const coverage = await compare(transfers, key, isJudged)
  if (coverage === undefined) return true
  if (!isPush) {
    if (!isOpen || !coverage.isAhead) await transfers.copy(key, 'pull')
    return true
  }
  const winner = coverage.isBehind ? 'remote' : coverage.isAhead ? 'local' : change
  if (winner === 'local') await transfers.copy(key, 'push')
  // An open file that is behind stays: the recorder of the other collector is ahead, and the next file of this one is.
  if (winner === 'remote' && !isOpen) await transfers.copy(key, 'pull')
  return winner !== 'both'
}

/** Which file covers what the other lacks: neither unless `isJudged`, undefined where both are the same. */
async function compare(
  transfers: RawTransfers,
  key: string,
  isJudged: boolean,
): Promise<{ readonly isBehind: boolean; readonly isAhead: boolean } | undefined> {
  const { local, remote, options } = transfers
  const [own, other] = await transfers.heads(key)
  if (own === undefined || other === undefined) throw new ObjectChanged(key)
  if (await transfers.areEqual(key, own, other)) return undefined
  if (!isJudged) return { isBehind: false, isAhead: false }
  const [a, b] = [await factsOf(local, own, options.signal), await factsOf(remote, other, options.signal)]
  return {
    isBehind: a === undefined || (b !== undefined && coversLess(a, b) !== undefined),
    isAhead: b === undefined || (a !== undefined && coversLess(b, a) !== undefined),
  }
}

/** Files of a date that has no manifest yet follow the rules of files without raw segments. */
export async function bringOverFiles(
  { isPush, notes }: RawTransfers,
  { local, remote }: DateView,
  bringOver: (key: string) => Promise<void>,
): Promise<void> {
  for (const key of (isPush ? local : remote).files.keys())
    if (!notes.isEqual(key, local.files.get(key), remote.files.get(key))) await bringOver(key)
}

/** Names files that may not be pushed, since they are not derived from the raw segments that object storage holds. */
export async function reportBehind(transfers: RawTransfers, { local, remote }: DateView): Promise<void> {
  const reason = `${transfers.remote.name} holds raw segments of its date and the lake holds none; pull them with \`sync --from <place> --raw\``
  for (const [key, file] of local.files) {
    if (transfers.notes.isEqual(key, file, remote.files.get(key))) continue
    const [own, other] = await transfers.heads(key)
    if (own !== undefined && !(await transfers.areEqual(key, own, other)))
      transfers.options.report.conflicts.set(key, reason)
  }
}
