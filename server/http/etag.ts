// Entity tags: how they are built from the inputs of an answer, and how If-None-Match is parsed. A coded answer has other
// bytes than the plain one, so it has its own tag: the plain tag with the coding appended.

import { contentIdentity } from '../../shared/content-identity.ts'
import type { ContentCoding } from './content-coding.ts'

/** A strong entity tag, quotes included, from all inputs of an answer's bytes. */
export function strongEtag(...parts: readonly string[]): string {
  return `"${contentIdentity(parts)}"`
}

/** The tag of an answer in coded form. */
export function codedEtag(etag: string, coding: ContentCoding): string {
  return coding === 'identity' ? etag : `${etag.slice(0, -1)}-${coding}"`
}

const LISTED_TAG = /\s*(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)/gy

/**
 * The tags of an If-None-Match header, without their weakness flag, which does not count here (RFC 9110, section 13.1.2).
 * `['*']` for the asterisk. Reading stops at a malformed member.
 */
function listedTags(ifNoneMatch: string): string[] {
  if (ifNoneMatch.trim() === '*') return ['*']
  return [...ifNoneMatch.matchAll(LISTED_TAG)].map(([, tag = '']) => tag)
}

/** The tag of If-None-Match that is `etag` in any coding; `undefined` when none is. */
export function matchingTag(ifNoneMatch: string, etag: string): string | undefined {
  if (ifNoneMatch === '') return undefined
  const forms = [etag, codedEtag(etag, 'gzip'), codedEtag(etag, 'zstd')]
  for (const tag of listedTags(ifNoneMatch)) {
    if (tag === '*') return etag
    if (forms.includes(tag)) return tag
  }
  return undefined
}

/** The tags of If-None-Match as the text inside plain tags: without quotes and coding. */
export function heldIdentities(ifNoneMatch: string): string[] {
  return listedTags(ifNoneMatch).map((tag) => tag.replaceAll('"', '').replace(/-(?:gzip|zstd)$/, ''))
}
