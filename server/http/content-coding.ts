// Chooses the content coding of an answer (RFC 9110, section 12.5.3). Of the codings that the client prefers equally, the
// server takes the first it offers. If the client refuses all of them, the answer is sent plain, which the RFC allows.

import * as zlib from 'node:zlib'
import { OUTPUT_FORMATS } from '../../shared/formats.ts'

export type ContentCoding = 'identity' | 'gzip' | 'zstd'

/** Node has zstd from 22.15 on; the types of Node 20 do not know it. */
const hasZstd = 'createZstdCompress' in zlib

/** Codings that this process can produce, best first. */
export const OFFERED_CODINGS: readonly ContentCoding[] = hasZstd
  ? ['zstd', 'gzip', 'identity']
  : ['gzip', 'identity']

const QVALUE = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

/** The weights of an Accept header by coding or type, in lower case; malformed members are ignored. */
export function readWeights(accept: string): Map<string, number> {
  const weights = new Map<string, number>()
  for (const member of accept.split(',')) {
    const [name = '', ...parameters] = member.split(';').map((part) => part.trim().toLowerCase())
    if (name === '') continue
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1'
    if (QVALUE.test(weight)) weights.set(name === 'x-gzip' ? 'gzip' : name, Number(weight))
  }
  return weights
}

/**
 * The coding for a request with this Accept-Encoding. An empty text means that the header was empty or not sent: then the
 * answer is not encoded. Also `identity` when nothing on offer is acceptable.
 */
export function chooseCoding(
  acceptEncoding: string,
  offered: readonly ContentCoding[] = OFFERED_CODINGS,
): ContentCoding {
  if (acceptEncoding === '') return 'identity'
  const weights = readWeights(acceptEncoding)
  const others = weights.get('*')
  let best: ContentCoding = 'identity'
  let bestWeight = 0
  for (const coding of offered) {
    // Identity is acceptable without being named, but preferred only if named.
    const weight = weights.get(coding) ?? others ?? (coding === 'identity' ? Number.MIN_VALUE : 0)
    if (weight > bestWeight) {
      best = coding
      bestWeight = weight
    }
  }
  return best
}

const CODED_TYPES: ReadonlySet<string> = new Set([
  ...Object.values(OUTPUT_FORMATS).flatMap(({ contentType, isText }) => (isText ? [contentType] : [])),
  'application/problem+json',
  'application/typescript',
  'text/css',
  'text/html',
  'text/javascript',
  'text/markdown',
  'text/plain',
  'text/x-python',
])

/** Whether coding makes an answer of this Content-Type smaller: text, yes; parquet is compressed already. */
export function isCodedType(contentType: string): boolean {
  const end = contentType.indexOf(';')
  return CODED_TYPES.has(end === -1 ? contentType : contentType.slice(0, end))
}
