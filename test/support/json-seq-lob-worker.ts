// The order-book worker with an encoder for the test format.

import { RECORD_SEPARATOR } from './json-seq-format.ts'
import { JsonRowFormat } from '../../workers/lob/row-format-json.ts'
import { SNAPSHOT_FORMATS } from '../../workers/lob/snapshot-sink.ts'
import type { RowShape } from '../../workers/lob/row-encoder.ts'

class JsonSeqRowFormat extends JsonRowFormat {
  constructor(query: RowShape) {
    super({ ...query, isArray: false })
    const texts = { ...this.texts }
    this.texts.before = (name, index) => `${index === 0 ? RECORD_SEPARATOR : ''}${texts.before(name, index)}`
  }
}

Object.assign(SNAPSHOT_FORMATS, {
  'json-seq': (query: RowShape) => new JsonSeqRowFormat(query),
})

export { default } from '../../workers/lob/task.ts'
