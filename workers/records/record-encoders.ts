// The encoder of records for each format.

import type { FormatName } from '../../shared/formats.ts'
import type { RecordField } from '../../shared/record-field.ts'
import type { ChunkStream } from '../output/chunk-stream.ts'
import type { RecordEncoder } from './record-batch.ts'
import { RecordParquetEncoder } from './record-parquet.ts'
import { RecordTextEncoder } from './record-text.ts'

export type RecordEncoderMaker = (fields: readonly RecordField[], stream: ChunkStream) => RecordEncoder

export const RECORD_ENCODERS: Readonly<Record<FormatName, RecordEncoderMaker>> = {
  json: (fields, stream) => new RecordTextEncoder('json', fields, stream),
  ndjson: (fields, stream) => new RecordTextEncoder('ndjson', fields, stream),
  csv: (fields, stream) => new RecordTextEncoder('csv', fields, stream),
  parquet: (fields, stream) => new RecordParquetEncoder(fields, stream),
}
