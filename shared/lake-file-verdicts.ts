// The results of checksum checks of candles and observations files. The threads of a process share them over a channel, so that a
// file is checked once, and the server can count them. The number of results is bounded; the oldest are evicted, and such a file
// is checked again.

import { BroadcastChannel } from 'node:worker_threads'
import { FileFacts } from './file-facts.ts'

/** `right`, `wrong`, or `none`: the file has no checksum. */
export const FILE_VERDICTS = ['right', 'none', 'wrong'] as const
export type FileVerdict = (typeof FILE_VERDICTS)[number]

interface Finding {
  readonly path: string
  /** Changes when the file is replaced. */
  readonly identity: string
  readonly verdict: FileVerdict
}

const CHANNEL = 'bookcast-lake-file-verdicts'
/** The maximum of cached results; more than the files of one request. */
const FILES_MAX = 8_192

export class LakeFileVerdicts {
  readonly #verdicts = new FileFacts<FileVerdict>(FILES_MAX)
  readonly #channel = new BroadcastChannel(CHANNEL)

  constructor() {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- Node's types give the channel no other way
    this.#channel.onmessage = (message): void => this.#remember((message as { data: Finding }).data)
    this.#channel.unref()
  }

  /** The result for this file with this identity, from any thread. */
  of(path: string, identity: string): FileVerdict | undefined {
    return this.#verdicts.of(path, identity)
  }

  /** Adds a result and sends it to the other threads. */
  add(path: string, identity: string, verdict: FileVerdict): void {
    const finding: Finding = { path, identity, verdict }
    this.#remember(finding)
    this.#channel.postMessage(finding)
  }

  /** The number of files with each verdict. */
  counts(): Record<FileVerdict, number> {
    const counts = { right: 0, none: 0, wrong: 0 }
    for (const verdict of this.#verdicts.values()) counts[verdict]++
    return counts
  }

  close(): void {
    this.#channel.close()
  }

  #remember({ path, identity, verdict }: Finding): void {
    this.#verdicts.add(path, identity, verdict)
  }
}
