// An order-book worker whose file does not respond if the series of its query is `SILENT`: it waits in the kernel for the writer of
// a named pipe, like for an unreachable share. Other series have an empty response.

import { openSync } from 'node:fs'
import { FileWatch } from '../../shared/file-watch.ts'
import type { LobTask } from '../../shared/lob-task.ts'
import type { WarmTask } from '../../shared/stream-task.ts'

const SILENT_FILE = 'kalshi/series=SILENT/2026-07-01.parquet'

const pipe = process.env['BOOKCAST_TEST_SILENT_PIPE'] ?? ''

export default async function run(task: LobTask | WarmTask): Promise<void> {
  if ('warm' in task) return
  const { port, query, watch, silentFiles } = task
  if (query.series === 'SILENT') {
    if (silentFiles.includes(SILENT_FILE)) {
      port.postMessage({ kind: 'error', code: 'lake_file_invalid', detail: 'known', errors: [] })
      port.close()
      return
    }
    const word = new FileWatch(watch)
    word.begin(SILENT_FILE)
    openSync(pipe, 'r')
    word.end()
  }
  port.postMessage({
    kind: 'head',
    rows: 0,
    lastRow: null,
    missingDates: [],
    identity: 'empty',
    writtenAtMs: 0,
    isHeld: false,
    sections: null,
  })
  port.postMessage({ kind: 'end', rows: 0 })
  port.close()
}
