// The record worker with an encoder for the test format.

import { RECORD_SEPARATOR } from './json-seq-format.ts'
import type { RecordField } from '../../shared/record-field.ts'
import type { ChunkStream } from '../../workers/output/chunk-stream.ts'
import { TextVector } from '../../workers/records/duck-vectors.ts'
import type { ColumnValues, RecordBatch, RecordEncoder } from '../../workers/records/record-batch.ts'
import { RECORD_ENCODERS, type RecordEncoderMaker } from '../../workers/records/record-encoders.ts'

class JsonSeqEncoder implements RecordEncoder {
  readonly #names: readonly string[]
  readonly #stream: ChunkStream

  constructor(fields: readonly RecordField[], stream: ChunkStream) {
    this.#names = fields.map(({ name }) => name)
    this.#stream = stream
  }

  async begin(): Promise<void> {}

  async write({ rows, columns }: RecordBatch): Promise<void> {
    for (let row = 0; row < rows; row++) {
      const values = this.#names.map((name, column) => [name, valueAt(columns[column], row)])
      const line = `${RECORD_SEPARATOR}${JSON.stringify(Object.fromEntries(values))}\n`
      await this.#stream.write(Buffer.from(line))
    }
  }

  async finish(): Promise<void> {}
}

function valueAt(values: ColumnValues | undefined, row: number): number | string | null {
  // Texts are packed only for parquet.
  if (values === undefined || values instanceof TextVector) throw new Error('no column of values')
  const value = values[row] ?? null
  return typeof value === 'bigint' ? Number(value) : value
}

const makeEncoder: RecordEncoderMaker = (fields, stream) => new JsonSeqEncoder(fields, stream)
Object.assign(RECORD_ENCODERS, { 'json-seq': makeEncoder })

export { default } from '../../workers/records/task.ts'
