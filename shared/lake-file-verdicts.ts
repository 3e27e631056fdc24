// The results of checksum checks of candles and observations files. The threads of a process share them over a channel, so that a
// file is checked once, and the server can count them. The number of results is bounded; the oldest are evicted, and such a file
// is checked again.

import { BroadcastChannel } from 'node:worker_threads'
import { FileFacts } from './file-facts.ts'

/** `right`, `wrong`, or `none`: the file has no checksum. */
export const FILE_VERDICTS = ['right', 'none', 'wrong'] as const
export type FileVerdict = (typeof FILE_VERDICTS)[number]

type Finding = readonly [path: string, identity: string, verdict: FileVerdict]

const CHANNEL = 'bookcast-lake-file-verdicts'
/** The maximum of cached results; more than the files of one request. */
const FILES_MAX = 8_192

export class LakeFileVerdicts extends FileFacts<FileVerdict> {
  readonly #channel = new BroadcastChannel(CHANNEL)

  constructor() {
    super(FILES_MAX)
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- Node's types give the channel no other way
    this.#channel.onmessage = (message): void => super.add(...(message as { data: Finding }).data)
    this.#channel.unref()
  }

  /** Adds a result and sends it to the other threads. */
  override add(...finding: Finding): void {
    super.add(...finding)
    this.#channel.postMessage(finding)
  }

  /** The number of files with each verdict. */
  counts(): Record<FileVerdict, number> {
    const counts = { right: 0, none: 0, wrong: 0 }
    for (const verdict of this.values()) counts[verdict]++
    return counts
  }

  close(): void {
    this.#channel.close()
  }
}
