// Runs the order-book task in this thread and acts as the server, for tests of the worker alone.

import { MessageChannel } from 'node:worker_threads'
import { fileWatchMemory } from '../../shared/file-watch.ts'
import type { LakePin } from '../../shared/lake-pin.ts'
import {
  SNAPSHOT_COLUMNS,
  type LobCatalogueEntry,
  type LobHead,
  type LobPart,
  type LobQuery,
} from '../../shared/lob-task.ts'
import type { SectionFigures, StreamFailure, WorkerMessage } from '../../shared/stream-task.ts'
import runLobTask, { type SharingBounds } from '../../workers/lob/task.ts'

export interface CollectedAnswer {
  readonly head: LobHead | undefined
  readonly body: Buffer
  readonly chunks: readonly number[]
  readonly sections: readonly SectionFigures[]
  readonly endRows: number | undefined
  readonly failure: StreamFailure | undefined
}

/** A query with the interface's defaults. */
export function lobQuery(query: Partial<LobQuery> & Pick<LobQuery, 'dates'>): LobQuery {
  return {
    source: 'kalshi',
    market: null,
    series: null,
    intervalS: 60,
    levels: 10,
    hour: null,
    format: 'json',
    columns: SNAPSHOT_COLUMNS,
    nulls: false,
    after: null,
    limit: null,
    ...query,
  }
}

/** Actions of a test during a response. */
export interface AnswerEvents {
  readonly headOnly?: boolean
  readonly onFirstChunk?: () => void
  /** Called when a chunk leaves the worker, before it continues. */
  readonly onChunkSent?: () => void
  readonly cancelAfterFirstChunk?: boolean
  readonly catalogue?: LobCatalogueEntry
  readonly held?: readonly string[]
  readonly part?: LobPart
  readonly pin?: LakePin
  readonly bounds?: SharingBounds | undefined
}

/** Runs a query to its end and collects everything the worker sent. */
export async function collectLob(
  lake: string,
  query: LobQuery,
  events: AnswerEvents = {},
): Promise<CollectedAnswer> {
  const { port1, port2 } = new MessageChannel()
  const post = port2.postMessage.bind(port2)
  port2.postMessage = (message: WorkerMessage<LobHead>): void => {
    if (message.kind === 'chunk') events.onChunkSent?.()
    post(message)
  }
  const parts: Buffer[] = []
  let sections: readonly SectionFigures[] = []
  let head: LobHead | undefined
  let endRows: number | undefined
  let failure: StreamFailure | undefined
  const buffers = new Map<number, SharedArrayBuffer>()
  port1.on('message', (message: WorkerMessage<LobHead>) => {
    if (message.kind === 'head') head = message
    else if (message.kind === 'chunk') {
      if (parts.length === 0) events.onFirstChunk?.()
      if (events.cancelAfterFirstChunk === true) port1.postMessage({ kind: 'cancel' })
      const { number, buffer = buffers.get(number)!, length } = message
      buffers.set(number, buffer)
      parts.push(Buffer.from(new Uint8Array(buffer, 0, length)))
      port1.postMessage({ kind: 'credit', number })
    } else if (message.kind === 'end') {
      endRows = message.rows
      sections = message.sections ?? []
    } else if (message.kind === 'error') failure = message
  })
  const closed = new Promise<void>((resolve) => port1.once('close', () => resolve()))
  const { headOnly = false, catalogue = null, held = [] } = events
  const task = {
    lake,
    query,
    headOnly,
    catalogue,
    validation: { seed: 'test', held },
    part: events.part,
    pin: events.pin,
    assistance: null,
    watch: fileWatchMemory(),
    silentFiles: [],
    port: port2,
  }
  await runLobTask(task, events.bounds)
  await closed
  const chunks = parts.map((part) => part.length)
  return { head, body: Buffer.concat(parts), chunks, sections, endRows, failure }
}
