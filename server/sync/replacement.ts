// Decides whether a file without raw segments may replace the object of the same key. Without --replace, a push replaces no file by
// one that covers less, and a pull keeps files that another writer made in the lake. Files derived from raw segments follow the
// manifests of their date instead (date-sync.ts). No readable file is replaced by one that cannot be read.

import { coversLess, type LakeFileFacts, readLakeFileFacts } from '../lake/lake-file-facts.ts'
import { UNMARKED_SAMPLE_SIZES, UNMARKED_SAMPLES } from '../sample-data/unmarked-samples.ts'
import { type ListedObject, type ObjectHead, type ObjectStore, readTail } from './object-store.ts'

export interface Replacement {
  readonly source: ObjectStore
  readonly target: ObjectStore
  /** The new object, and the one that it would replace. */
  readonly next: ObjectHead
  readonly present: ObjectHead
  readonly direction: 'pull' | 'push'
  /** Whether the rules apply. Otherwise, only an unreadable file is refused, which would replace a readable one. */
  readonly isJudged: boolean
  readonly signal: AbortSignal | undefined
}

const FOREIGN = 'another writer made it'
const UNREADABLE =
  'the file in the lake cannot be read, and the one that it would replace can. Remove it, and pull it with `sync --from` (--raw for a ' +
  'lake with raw segments)'
const REMEDY = '; sync --replace replaces it'
const OLD =
  'version 0.1 wrote the file in the lake, and no raw segments of the lake have its rows. The file stays. A collector that runs on the ' +
  "file's date or the next one keeps the rows as raw segments within seconds. Later, import everything recorded of the date at once " +
  'with `import --replace`'

/**
 * The reason why the object may not be replaced, with the remedy, for the user; undefined if it may be replaced.
 * @param isOwn whether this synchronization wrote the present object
 */
export async function conflictOf(replacement: Replacement, isOwn: boolean): Promise<string | undefined> {
  const { direction, isJudged } = replacement
  if (direction === 'pull') return isJudged ? await pullConflict(replacement, isOwn) : undefined
  const reason = await pushConflict(replacement, isOwn)
  return reason === undefined || reason === UNREADABLE ? reason : `${reason}${REMEDY}`
}

async function pullConflict(
  { target, present, signal }: Replacement,
  isOwn: boolean,
): Promise<string | undefined> {
  if (isOwn || isUnmarkedSample(present)) return undefined
  const { isSample, isOld } = (await factsOf(target, present, signal)) ?? {}
  if (isSample === true) return undefined
  return isOld === true ? OLD : `${FOREIGN}${REMEDY}`
}

async function pushConflict(
  { source, target, next, present, isJudged, signal }: Replacement,
  isOwn: boolean,
): Promise<string | undefined> {
  const a = await factsOf(source, next, signal)
  if (a !== undefined && !isJudged) return undefined
  const b = await factsOf(target, present, signal)
  // An unreadable object covers nothing that could be lost, but only its writer may replace it.
  if (b === undefined) return isOwn || !isJudged ? undefined : FOREIGN
  if (a === undefined) return UNREADABLE
  if (b.isSample || isUnmarkedSample(present)) return undefined
  const less = coversLess(a, b)
  if (less !== undefined) return `it would be replaced by a file that covers less: ${less}`
  if (isOwn) return undefined
  // A recording that continues gets gaps. In the file of another writer they would replace known books.
  if (a.coverage === null || b.coverage === null) return FOREIGN
  return a.coverage.gaps > b.coverage.gaps ? `${FOREIGN}, with fewer gaps` : undefined
}

/** Whether an object holds generated sample data. */
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

export async function factsOf(
  store: ObjectStore,
  object: ListedObject,
  signal: AbortSignal | undefined,
): Promise<LakeFileFacts | undefined> {
  return await readLakeFileFacts(object.sizeBytes, readTail(store, object, signal))
}
