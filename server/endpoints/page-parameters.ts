// The paging parameters of catalogue lists, and the reply with a link to the next page.

import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from '../../shared/limits.ts'
import type { CataloguePage, PageBounds } from '../catalogue/catalogue.ts'
import type { WholeReply } from '../http/endpoint.ts'
import { nextLink } from '../http/next-link.ts'
import type { Parameter } from '../query/parameters.ts'

const LIST_OFFSET_MAX = 1_000_000_000

export const PAGE_PARAMETERS = [
  {
    name: 'limit',
    description: 'Maximum number of records.',
    schema: { type: 'integer', minimum: 1, maximum: LIST_LIMIT_MAX, default: LIST_LIMIT_DEFAULT },
  },
  {
    name: 'offset',
    description: 'Records to skip.',
    schema: { type: 'integer', minimum: 0, maximum: LIST_OFFSET_MAX, default: 0 },
  },
] as const satisfies readonly Parameter[]

export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  ETag: 'Identifies the state of the catalogue and the request.',
  Link: 'With rel="next", the address of the next page; the last page has none.',
}

/** The reply of a page, with a link to the next page, which starts `looked` records later, if there is one. */
export function pageReply(
  path: string,
  values: Readonly<Record<string, string | number | undefined>> & PageBounds,
  { reply, hasMore }: CataloguePage,
  looked = values.limit,
): WholeReply {
  if (!hasMore) return reply
  const link = nextLink(path, { ...values, offset: values.offset + looked })
  return { ...reply, headers: { ...reply.headers, Link: link } }
}
