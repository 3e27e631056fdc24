// How many candles and observations files had a right, a wrong or no checksum, as reported by the record threads.

import type { Gauge } from 'prom-client'
import { FILE_VERDICTS, type LakeFileVerdicts } from '../../shared/lake-file-verdicts.ts'
import { gaugeOf } from './read-metrics.ts'

export function lakeFileGauge(verdicts: LakeFileVerdicts): Gauge {
  return gaugeOf(
    'bookcast_record_files',
    'Candles and observations files that requests have met, by what checking their checksum found.',
    () => {
      const counts = verdicts.counts()
      return FILE_VERDICTS.map((checksum) => [{ checksum }, counts[checksum]])
    },
    ['checksum'],
  )
}
