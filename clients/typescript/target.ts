// Paths and queries of requests: parameters as text, the next page, and the parts of a range.

import { BookcastError } from './errors.ts'
import type { Transfer } from './transfer.ts'

const MS_PER_DAY = 86_400_000
const HOURS_PER_DAY = 24

export type ParameterValue = string | number | boolean | readonly string[] | undefined

export type Parameters = Readonly<Record<string, ParameterValue>>

/** A time as text for the server: the UTC date for a date parameter, otherwise the instant. */
export function textOfTime(time: Date, isDate: boolean): string {
  if (Number.isNaN(time.getTime())) throw new BookcastError('A Date is no time: it is invalid.')
  const text = time.toISOString()
  return isDate ? text.slice(0, 10) : text
}

/** Encodes text as part of a URL. @throws {BookcastError} for an unpaired surrogate */
export function encoded(text: string): string {
  try {
    return encodeURIComponent(text)
  } catch (error) {
    throw new BookcastError(`There is a character in ${JSON.stringify(text)} that is none.`, { cause: error })
  }
}

/** Path and query of a request, without undefined parameters. */
export function targetOf(path: string, parameters: Readonly<Record<string, ParameterValue>>): string {
  const query = Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${encoded(name)}=${encoded(String(value))}`)
  return query.length === 0
    ? path
    : `${path}?${query.join('&').replaceAll('%2C', ',').replaceAll('%3A', ':')}`
}

/** The target of the next page in the Link header. Only the query is taken from it, because only the query differs. */
export function nextTarget({ headers, target }: Transfer): string | null {
  const link = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(headers.get('link') ?? '')?.[1]
  if (link === undefined) return null
  const query = link.indexOf('?')
  const [path] = target.split('?', 1)
  const next = `${path}${query === -1 ? '' : link.slice(query)}`
  if (next === target) throw new BookcastError('The server names a page as its own next page.')
  return next
}

/** The parts of a range of order books: its dates, or the hours of a single date. An hour is not divided further. */
export function partsOf({ date, from, to, hour }: Parameters): Parameters[] {
  const firstMs = Date.parse(String(date ?? from))
  const days = (Date.parse(String(date ?? to)) - firstMs) / MS_PER_DAY
  if (days > 0)
    return Array.from({ length: days + 1 }, (_, day) => ({
      date: new Date(firstMs + day * MS_PER_DAY).toISOString().slice(0, 10),
      from: undefined,
      to: undefined,
    }))
  if (hour !== undefined || Number.isNaN(days)) return []
  return Array.from({ length: HOURS_PER_DAY }, (_, part) => ({ hour: part }))
}

export function withLimit(target: string, limit: number): string {
  const [path = '', query = ''] = target.split('?', 2)
  const parameters = new URLSearchParams(query)
  parameters.set('limit', String(limit))
  return `${path}?${parameters.toString()}`
}
