// A test entry for the output formats: JSON text sequences (RFC 7464), with a record separator before each line.

import { OUTPUT_FORMATS, type OutputFormat, STREAMED_ROWS_MAX } from '../../shared/formats.ts'

export const RECORD_SEPARATOR = '\u001e'

const JSON_SEQ: OutputFormat = {
  contentType: 'application/json-seq',
  body: 'One record a line, after a record separator.',
  isFile: false,
  isText: true,
  isSectioned: true,
  rowsMax: STREAMED_ROWS_MAX,
}

Object.assign(OUTPUT_FORMATS, { 'json-seq': JSON_SEQ })
