// Lunex's messages → records. Nothing is numbered: a connection is one run.

import { EVENT_SET } from '../../../shared/lob-v1.ts'
import { RunRecords } from '../../../server/feed/feed-decoder.ts'
import type { FeedDecoderOptions, ResumableDecoder } from '../../../server/feed/feed-decoder.ts'
import type { FeedRun, FeedRunState } from '../../../server/feed/feed-run.ts'
import type { FeedSpans } from '../../../server/feed/feed-spans.ts'
import type { RunEnd } from '../../../server/feed/read-span.ts'
import type { RecordedMessage } from '../../../server/feed/frame.ts'
import type { ImportTally } from '../../../server/feed/import-tally.ts'
import { type LunexMessage, parseLunexFrame } from './frame.ts'
import { LUNEX_NAMES } from './names.ts'

interface LunexDecoderState {
  readonly name: string
  readonly run: FeedRunState | undefined
}

export class LunexDecoder implements ResumableDecoder {
  readonly #tally: ImportTally
  readonly #spans: FeedSpans
  readonly #records: RunRecords
  #name = ''
  #run: FeedRun | undefined

  constructor(options: FeedDecoderOptions, state?: unknown) {
    this.#tally = options.tally
    this.#spans = options.spans
    this.#records = new RunRecords(options, LUNEX_NAMES.seriesOf)
    if (state === undefined) return
    const { name, run } = state as LunexDecoderState
    this.#name = name
    if (run !== undefined) this.#run = this.#spans.resume(run)
  }

  state(): LunexDecoderState {
    return { name: this.#name, run: this.#run?.state() }
  }

  forgetMarkets(): void {
    this.#records.forgetMarkets()
  }

  startFile(name: string): void {
    this.#end('end of file')
    this.#name = name
  }

  decode({ frames, recvTs }: RecordedMessage): void {
    for (const frame of frames) this.#take(parseLunexFrame(frame), recvTs)
  }

  skipBadLine(): void {
    this.#end('bad line')
  }

  finishFile(): void {
    this.#end('end of file')
  }

  #take(message: LunexMessage, recvTs: bigint | undefined): void {
    this.#tally.messages++
    if (message.kind === 'disconnect') {
      this.#end('disconnect')
      return
    }
    const stamp = { ts: message.ts, recvTs: recvTs ?? message.ts, seq: 0 }
    const run = this.#runAt(stamp, message.kind === 'heard')
    if (message.kind === 'heard') return
    this.#records.checkId(message.id)
    if (message.kind === 'book') this.#records.snapshot(run, message.id, stamp, message.levels)
    else this.#records.level(run, message.id, stamp, EVENT_SET, message.level)
  }

  #runAt({ ts, recvTs }: { readonly ts: bigint; readonly recvTs: bigint }, isOwnWord: boolean): FeedRun {
    const facts = { sid: null, isBegun: true, isTurned: null, connection: 0 }
    this.#run ??= this.#spans.start(facts, this.#name)
    this.#run.take(0, ts, recvTs, isOwnWord)
    return this.#run
  }

  #end(reason: RunEnd): void {
    if (this.#run !== undefined) this.#records.end(this.#run, reason)
    this.#run = undefined
  }
}
