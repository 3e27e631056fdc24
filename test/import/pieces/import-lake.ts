// The one place where these tests call the product: an import of files into a lake that may have others already.

import { Readable } from 'node:stream'
import { importRecordings } from '../../../server/import/recording-import.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'

/**
 * Imports `paths` in one run. Rejects with the product's error, or as soon as it writes a date after `lastDate`: one
 * wrong clock would otherwise make it write a file for every date until 2099.
 */
export async function importLake(
  source: LobSource,
  lake: string,
  paths: readonly string[],
  lastDate: string,
): Promise<void> {
  const stop = new AbortController()
  await importRecordings({
    source,
    lake,
    paths,
    stdin: Readable.from([]),
    skipBad: false,
    replace: false,
    useYesPrice: false,
    signal: stop.signal,
    progress: {
      onWrite: ({ date }) => {
        if (date > lastDate) stop.abort(new Error(`writes a file of ${date}, when nothing was recorded`))
      },
    },
  })
}
