// What checking the checksums of candles and observations files has found, by file: shared between the threads of a
// process over a channel, so that a file is read for its checksum once and the server can count. Bounded: what was
// found first is forgotten first, and such a file is checked again.

import { BroadcastChannel } from 'node:worker_threads'
import { BoundedMap } from './bounded-map.ts'

/** `right`, `wrong`, or `none`: the file carries no checksum. */
export const FILE_VERDICTS = ['right', 'none', 'wrong'] as const
export type FileVerdict = (typeof FILE_VERDICTS)[number]

interface Finding {
  readonly path: string
  /** Changes when the file is replaced. */
  readonly identity: string
  readonly verdict: FileVerdict
}

const CHANNEL = 'bookcast-lake-file-verdicts'
/** Files remembered; more than one request may look into. */
const FILES_MAX = 8_192

export class LakeFileVerdicts {
  readonly #findings = new BoundedMap<Finding>(FILES_MAX)
  readonly #channel = new BroadcastChannel(CHANNEL)

  constructor() {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- Node's types give the channel no other way
    this.#channel.onmessage = (message): void => this.#remember((message as { data: Finding }).data)
    this.#channel.unref()
  }

  /** What was found of this very file, here or in another thread. */
  of(path: string, identity: string): FileVerdict | undefined {
    const finding = this.#findings.get(path)
    return finding?.identity === identity ? finding.verdict : undefined
  }

  /** Remembers a finding and tells the other threads. */
  add(path: string, identity: string, verdict: FileVerdict): void {
    const finding: Finding = { path, identity, verdict }
    this.#remember(finding)
    this.#channel.postMessage(finding)
  }

  /** How many files there are of each verdict. */
  counts(): Record<FileVerdict, number> {
    const counts = { right: 0, none: 0, wrong: 0 }
    for (const { verdict } of this.#findings.values()) counts[verdict]++
    return counts
  }

  close(): void {
    this.#channel.close()
  }

  #remember(finding: Finding): void {
    this.#findings.set(finding.path, finding)
  }
}
