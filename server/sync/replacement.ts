// Whether an object may take the place of another one with the same key. What somebody recorded is never given up for
// less: a collector that begins anew, or one that was restored, must not shrink what object storage has. A copy of the
// lake in turn follows object storage, and only what was made in it by somebody else is kept.

import { coversLess, lacksStrands, type LakeFileFacts, readLakeFileFacts } from '../lake/lake-file-facts.ts'
import { UNMARKED_SAMPLE_SIZES, UNMARKED_SAMPLES } from '../sample-data/unmarked-samples.ts'
import { type ListedObject, type ObjectHead, type ObjectStore, readTail } from './object-store.ts'

export interface Replacement {
  readonly source: ObjectStore
  readonly target: ObjectStore
  /** The object that comes, and the one that is there. */
  readonly next: ObjectHead
  readonly present: ObjectHead
  readonly direction: 'pull' | 'push'
  readonly signal: AbortSignal | undefined
}

const FOREIGN = 'it was written by somebody else'

/**
 * Why it may not, for people; undefined when it may.
 * @param isOwn whether this synchronization wrote the one that is there
 */
export async function conflictOf(replacement: Replacement, isOwn: boolean): Promise<string | undefined> {
  return replacement.direction === 'pull'
    ? pullConflict(replacement, isOwn)
    : pushConflict(replacement, isOwn)
}

async function pullConflict(
  { target, present, signal }: Replacement,
  isOwn: boolean,
): Promise<string | undefined> {
  if (isOwn || (await isSampleObject(target, present, signal))) return undefined
  return FOREIGN
}

async function pushConflict(
  { source, target, next, present, signal }: Replacement,
  isOwn: boolean,
): Promise<string | undefined> {
  const [a, b] = [await factsOf(source, next, signal), await factsOf(target, present, signal)]
  // What cannot be read covers nothing that could be lost, but it is not ours to judge when somebody else wrote it.
  if (b === undefined) return isOwn ? undefined : FOREIGN
  if (b.isSample || isUnmarkedSample(present)) return undefined
  if (a === undefined) return 'it cannot be read'
  const lacking = lacksStrands(a, b)
  if (lacking === undefined) return undefined
  const less = coversLess(a, b)
  if (less !== undefined) return `it would be replaced by a file that covers less: ${less}`
  if (isOwn) return undefined
  if (lacking !== null) return `${FOREIGN}, and ${lacking}`
  // Gaps come to a recording that goes on; in somebody else's they would be books that were known.
  if (a.coverage === null || b.coverage === null) return FOREIGN
  return a.coverage.gaps > b.coverage.gaps ? `${FOREIGN}, with fewer gaps` : undefined
}

/** Whether an object holds invented data. */
export async function isSampleObject(
  store: ObjectStore,
  object: ObjectHead,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  return isUnmarkedSample(object) || (await factsOf(store, object, signal))?.isSample === true
}

function isUnmarkedSample({ sizeBytes, sha256 }: ObjectHead): boolean {
  return sha256 !== null && UNMARKED_SAMPLE_SIZES.has(sizeBytes) && UNMARKED_SAMPLES.has(sha256)
}

async function factsOf(
  store: ObjectStore,
  object: ListedObject,
  signal: AbortSignal | undefined,
): Promise<LakeFileFacts | undefined> {
  return await readLakeFileFacts(object.sizeBytes, readTail(store, object, signal))
}
