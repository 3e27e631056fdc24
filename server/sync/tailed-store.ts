// Object storage that uploads only the new bytes of a growing order-book file. A recorder publishes the file of the open date
// repeatedly. The bytes of its closed hours stay the same; only the open hour and the footer change. So the whole object is written
// now and then. Between that, only the bytes after the common beginning are written: the tail, an object beside it, which names the
// version of the whole object that it continues. Readers take both as one object. A tail of another version is ignored. When the
// date is over, the object is written whole.

import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { BoundedMap } from '../../shared/bounded-map.ts'
import { lobFileOfKey } from '../../shared/lake-layout.ts'
import { utcDateOf } from '../../shared/utc-date.ts'
import {
  type ListedObject,
  ObjectChanged,
  type ObjectHead,
  type ObjectStore,
  type OpenBytes,
  type WriteOptions,
  type WrittenObject,
  isLakeKey,
  isListed,
  type ListOptions,
} from './object-store.ts'
import type { S3ObjectHead, S3Store } from './s3-store.ts'
import { pumpBytes } from './transfer-pump.ts'

const SUFFIX = '.tail'
/** Bytes that are compared at once: a tail begins at a multiple of it. */
const BLOCK_BYTES = 4 * 1024
/** Objects whose last whole version the process remembers. */
const KEYS_MAX = 10_000
/** Larger ones, of 4 GB, are always written whole. */
const BLOCKS_MAX = 1024 * 1024
/** A longer tail is not held in memory. */
const TAIL_BYTES_MAX = 32 * 1024 * 1024
const SHARED_MS = 60 * 60 * 1000

/** The last whole version that this process has written. */
interface Base {
  readonly etag: string
  readonly blocks: readonly string[]
  /** The blocks of the latest version, with its tail. */
  lastBlocks: readonly string[]
  /** By how many bytes the tails were larger than they would have been after a new whole write each time. */
  excessBytes: number
  /** Until this time, the object is written whole and conditionally, because another writer has written it. */
  readonly sharedUntilMs: number
}

export class TailedStore implements ObjectStore {
  readonly name: string
  readonly #store: S3Store
  readonly #nowMs: () => number
  readonly #bases = new BoundedMap<Base>(KEYS_MAX)

  constructor(store: S3Store, nowMs: () => number = Date.now) {
    this.name = store.name
    this.#store = store
    this.#nowMs = nowMs
  }

  /** Sizes are those of the objects without their tails. Only `head` knows the size with the tail. */
  async *list(signal?: AbortSignal, options: ListOptions = {}): AsyncGenerator<ListedObject, void, void> {
    // In the order of keys, a tail comes directly after its object, but some services do not list in order.
    const tails = new Map<string, string>()
    const objects: ListedObject[] = []
    const isWanted = (key: string): boolean => isListed(key, options) || isTailKey(key)
    for await (const object of this.#store.list(signal, options, isWanted)) {
      if (isTailKey(object.key)) tails.set(object.key.slice(0, -SUFFIX.length), object.version)
      else objects.push(object)
    }
    for (const object of objects) {
      yield { ...object, version: versionOf(object.version, tails.get(object.key)) }
    }
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectHead | undefined> {
    const [base, tail] = await Promise.all([this.#store.head(key, signal), this.#tailHead(key, signal)])
    if (base === undefined) return undefined
    const version = versionOf(base.version, tail?.version)
    const live = tailOf(base, tail)
    if (live === undefined) return { ...base, version, ...prefixOf(Number(base.metadata['prefix'])) }
    // The date is over: report no digest, so that its writer writes the whole object once more.
    const isDue = this.#bases.get(key) !== undefined && !this.#isOpen(key)
    return {
      key,
      version,
      sizeBytes: live.sizeBytes,
      sha256: isDue ? null : (live.head.metadata['whole'] ?? null),
      md5: null,
      ...prefixOf(live.fromByte),
    }
  }

  async get(object: ListedObject, offset: number, signal?: AbortSignal): Promise<Readable> {
    const { key } = object
    const [etag, tailEtag] = etagsOf(object.version)
    const listed = { key, sizeBytes: object.sizeBytes, version: etag }
    if (tailEtag === undefined) return await this.#store.get(listed, offset, signal)
    const tail = await this.#tailHead(key, signal)
    if (tail?.version !== tailEtag) throw new ObjectChanged(key)
    if (tail.metadata['base'] !== etag) return await this.#store.get(listed, offset, signal)
    const fromByte = Number(tail.metadata['from'])
    if (offset >= fromByte) return await this.#store.get(tail, offset - fromByte, signal)
    return Readable.from(inTurn(this.#store, listed, offset, fromByte, tail, signal), { objectMode: false })
  }

  /**
   * Writes the whole object or its tail. A whole write is due when the excess bytes of the tails since the last one have reached
   * its size. So the total is at most twice the minimum.
   */
  async put(head: ObjectHead, open: OpenBytes, options: WriteOptions = {}): Promise<WrittenObject> {
    const { key } = head
    const { replaces } = options
    const [etag, tailEtag] = typeof replaces === 'string' ? etagsOf(replaces) : []
    const ofWhole = replaces === undefined ? options : { ...options, replaces: etag ?? null }
    const before = this.#bases.get(key)
    if (before === undefined && !this.#isOpen(key)) {
      const written = await this.#store.put(head, open, ofWhole)
      return { ...written, version: versionOf(written.version, tailEtag) }
    }
    const isOwn = before !== undefined && before.etag === etag
    const { blocks, fromByte, tail } = await compareBlocks(head, open, before?.blocks ?? [], options.signal)
    const lastBytes = sharedBlocks(before?.lastBlocks ?? [], blocks) * BLOCK_BYTES
    const excessBytes = (before?.excessBytes ?? 0) + Math.max(0, lastBytes - fromByte)
    const isAlone = isOwn && this.#isOpen(key) && this.#nowMs() >= before.sharedUntilMs
    if (isAlone && tail !== undefined && excessBytes <= head.sizeBytes) {
      const written = await this.#putTail(head, tail, before.etag, { ...options, replaces: tailEtag ?? null })
      Object.assign(before, { lastBlocks: blocks, excessBytes })
      return { ...written, version: versionOf(before.etag, written.version) }
    }
    const written = await this.#store.put(head, open, {
      ...ofWhole,
      ...(fromByte === 0 ? {} : { metadata: { prefix: String(fromByte) } }),
    })
    const sharedUntilMs = before === undefined || isOwn ? before?.sharedUntilMs : this.#nowMs() + SHARED_MS
    this.#bases.delete(key)
    if (this.#isOpen(key))
      this.#bases.set(key, {
        etag: written.version,
        blocks,
        lastBlocks: blocks,
        excessBytes: 0,
        sharedUntilMs: sharedUntilMs ?? 0,
      })
    return { ...written, version: versionOf(written.version, tailEtag) }
  }

  async remove(key: string, signal?: AbortSignal): Promise<void> {
    this.#bases.delete(key)
    await this.#store.remove(key, signal)
    if (lobFileOfKey(key) !== undefined) await this.#store.remove(tailKey(key), signal)
  }

  close(): void {
    this.#store.close()
  }

  #isOpen(key: string): boolean {
    return (lobFileOfKey(key)?.date ?? '') >= utcDateOf(this.#nowMs())
  }

  async #putTail(
    { key, version, sizeBytes, sha256 }: ObjectHead,
    tail: Buffer,
    base: string,
    { signal, onBytes, beforeVisible, replaces = null }: WriteOptions,
  ): Promise<WrittenObject> {
    if (sha256 === null) throw new Error(`${key} cannot be uploaded before it was read`)
    await beforeVisible?.(sha256)
    const fromByte = sizeBytes - tail.length
    const head: ObjectHead = {
      key: tailKey(key),
      version,
      sizeBytes: tail.length,
      sha256: createHash('sha256').update(tail).digest('hex'),
      md5: createHash('md5').update(tail).digest('hex'),
    }
    onBytes?.(fromByte)
    const written = await this.#store.put(head, async () => Readable.from([tail], { objectMode: false }), {
      signal,
      onBytes,
      replaces,
      metadata: { base, from: String(fromByte), size: String(sizeBytes), whole: sha256 },
    })
    return { ...written, sha256 }
  }

  async #tailHead(key: string, signal: AbortSignal | undefined): Promise<S3ObjectHead | undefined> {
    return lobFileOfKey(key) === undefined ? undefined : await this.#store.head(tailKey(key), signal)
  }
}

/** The key of an object's tail. */
export function tailKey(key: string): string {
  return `${key}${SUFFIX}`
}

function isTailKey(key: string): boolean {
  return key.endsWith(SUFFIX) && isLakeKey(key.slice(0, -SUFFIX.length))
}

/** A tail that continues the present object, and the position of its first byte in the whole object. */
function tailOf(base: S3ObjectHead, head: S3ObjectHead | undefined) {
  if (head?.metadata['base'] !== base.version) return undefined
  const [fromByte, sizeBytes] = [Number(head.metadata['from']), Number(head.metadata['size'])]
  const isWhole = fromByte <= base.sizeBytes && fromByte + head.sizeBytes === sizeBytes
  if (!isWhole) throw new ObjectChanged(head.key)
  return { head, fromByte, sizeBytes }
}

/** Reads an object once, beside the digests of another one's blocks. */
async function compareBlocks(
  head: ObjectHead,
  open: OpenBytes,
  others: readonly string[],
  signal: AbortSignal | undefined,
) {
  /** A digest of each whole block; none for an object that is too large. */
  const blocks: string[] = []
  if (head.sizeBytes > BLOCKS_MAX * BLOCK_BYTES) return { blocks, fromByte: 0, tail: undefined }
  /** The first byte of the first block that differs. */
  let fromByte: number | undefined
  let tailBytes = 0
  const tail: Buffer[] = []
  const take = (block: Buffer): void => {
    const digest = createHash('md5').update(block).digest('base64')
    if (digest !== others[blocks.length]) fromByte ??= blocks.length * BLOCK_BYTES
    if (block.length === BLOCK_BYTES) blocks.push(digest)
    if (fromByte === undefined || others.length === 0) return
    tailBytes += block.length
    if (tailBytes <= TAIL_BYTES_MAX) tail.push(block)
    else tail.length = 0
  }
  let rest: Buffer = Buffer.alloc(0)
  await pumpBytes(
    await open(0, signal),
    async (chunk) => {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      let at = 0
      for (; at + BLOCK_BYTES <= bytes.length; at += BLOCK_BYTES) take(bytes.subarray(at, at + BLOCK_BYTES))
      rest = bytes.subarray(at)
    },
    signal,
  )
  if (rest.length > 0) take(rest)
  fromByte ??= head.sizeBytes
  const isTail = fromByte > 0 && tailBytes > 0 && tailBytes <= TAIL_BYTES_MAX
  /** `tail`: the bytes from there on; undefined if that is everything, or too much. */
  return { blocks, fromByte, tail: isTail ? Buffer.concat(tail) : undefined }
}

/** The first bytes of the whole object and then its tail. */
async function* inTurn(
  store: S3Store,
  whole: ListedObject,
  offset: number,
  fromByte: number,
  tail: ListedObject,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer, void, void> {
  for await (const chunk of await store.get(whole, offset, signal, fromByte)) yield chunk as Buffer
  for await (const chunk of await store.get(tail, 0, signal)) yield chunk as Buffer
}

function sharedBlocks(a: readonly string[], b: readonly string[]): number {
  const different = a.findIndex((block, index) => block !== b[index])
  return different === -1 ? a.length : different
}

function prefixOf(bytes: number): { readonly prefixBytes?: number } {
  return Number.isSafeInteger(bytes) && bytes > 0 ? { prefixBytes: bytes } : {}
}

// An ETag is text in double quotes, or a word.
function versionOf(etag: string, tailEtag: string | undefined): string {
  return tailEtag === undefined ? etag : `${etag} ${tailEtag}`
}

function etagsOf(version: string): [etag: string, tailEtag: string | undefined] {
  const [etag = '', tailEtag] = version.split(' ')
  return [etag, tailEtag]
}
