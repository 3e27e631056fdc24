// Writes records as a parquet file, row group by row group. A nullable field is OPTIONAL with definition levels, any other is
// REQUIRED. Texts are dictionary-encoded while they repeat, numbers if they have few distinct values. Instants are
// TIMESTAMP(us, UTC), without the zone of their label; dates are DATE. The pages are encoded here from typed arrays, because
// libraries need objects or copies.

import type { SchemaElement } from 'hyparquet'
import type { RecordField, RecordFieldType } from '../../shared/record-field.ts'
import type { ChunkStream } from '../output/chunk-stream.ts'
import { ParquetFileWriter } from '../output/parquet-file-writer.ts'
import {
  DateLeaf,
  NanosecondsLeaf,
  NumberLeaf,
  type PhysicalType,
  type RecordLeaf,
  TextLeaf,
} from './record-leaf.ts'
import type { RecordBatch, RecordEncoder } from './record-batch.ts'

const RECORD_ROW_GROUP_ROWS = 65_536
const PHYSICAL_TYPES: Readonly<Record<RecordFieldType, PhysicalType>> = {
  string: 'BYTE_ARRAY',
  date: 'INT32',
  number: 'DOUBLE',
  integer: 'INT32',
  boolean: 'BOOLEAN',
  instant: 'INT64',
}

const LOGICAL_TYPES: Partial<Record<RecordFieldType, Partial<SchemaElement>>> = {
  string: { converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  date: { converted_type: 'DATE', logical_type: { type: 'DATE' } },
  instant: {
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
}

function physicalType(field: RecordField): PhysicalType {
  return field.type === 'integer' && field.isWide === true ? 'INT64' : PHYSICAL_TYPES[field.type]
}

function schemaElement(field: RecordField): SchemaElement {
  return {
    name: field.name,
    type: physicalType(field),
    repetition_type: field.nullable ? 'OPTIONAL' : 'REQUIRED',
    ...LOGICAL_TYPES[field.type],
  }
}

export class RecordParquetEncoder implements RecordEncoder {
  readonly #stream: Pick<ChunkStream, 'write'>
  readonly #file: ParquetFileWriter
  readonly #leaves: readonly RecordLeaf[]
  #rows = 0

  constructor(fields: readonly RecordField[], stream: Pick<ChunkStream, 'write'>) {
    this.#stream = stream
    this.#file = new ParquetFileWriter(fields.map(schemaElement), fields.length)
    this.#leaves = fields.map(leafOf)
  }

  async begin(): Promise<void> {}

  async write(batch: RecordBatch): Promise<void> {
    for (let from = 0; from < batch.rows;) {
      const count = Math.min(batch.rows - from, RECORD_ROW_GROUP_ROWS - this.#rows)
      for (const [index, values] of batch.columns.entries()) this.#leaves[index]!.take(values, from, count)
      this.#rows += count
      from += count
      if (this.#rows === RECORD_ROW_GROUP_ROWS) await this.#flush()
    }
  }

  async finish(): Promise<void> {
    if (this.#rows > 0) await this.#flush()
    await this.#send(this.#file.finish())
  }

  async #flush(): Promise<void> {
    const pieces = this.#file.writeRowGroup(this.#leaves, this.#rows)
    for (const leaf of this.#leaves) leaf.clear()
    this.#rows = 0
    await this.#send(pieces)
  }

  async #send(pieces: readonly Uint8Array[]): Promise<void> {
    for (const bytes of pieces) await this.#stream.write(bytes)
  }
}

function leafOf(field: RecordField): RecordLeaf {
  const form = { name: field.name, type: physicalType(field), isNullable: field.nullable }
  if (field.type === 'string') return new TextLeaf(form, RECORD_ROW_GROUP_ROWS)
  if (field.type === 'date') return new DateLeaf(form)
  if (field.isBig === true) return new NanosecondsLeaf(form, RECORD_ROW_GROUP_ROWS)
  return new NumberLeaf(form, RECORD_ROW_GROUP_ROWS, field.type === 'instant')
}
