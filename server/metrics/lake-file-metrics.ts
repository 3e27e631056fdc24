// How many candles and observations files were found with a right, a wrong or no checksum, as the record threads tell.

import { Gauge } from 'prom-client'
import { FILE_VERDICTS, type LakeFileVerdicts } from '../../shared/lake-file-verdicts.ts'

export function lakeFileGauge(verdicts: LakeFileVerdicts): Gauge {
  return new Gauge({
    name: 'bookcast_record_files',
    help: 'Candles and observations files that requests have met, by what checking their checksum found.',
    labelNames: ['checksum'],
    // Without the list a gauge would join the library's global registry.
    registers: [],
    collect() {
      const counts = verdicts.counts()
      for (const verdict of FILE_VERDICTS) this.set({ checksum: verdict }, counts[verdict])
    },
  })
}
