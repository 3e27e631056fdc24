// Finds the endpoint of a path. Exact paths are one Map look-up; paths with `{name}` segments are compared segment by
// segment, in the order they were added. A path matches as a whole: no trailing slash, no prefix.

import { ApiError } from '../../shared/errors.ts'
import { quote } from '../query/parameter-parser.ts'
import type { Endpoint } from './endpoint.ts'

export interface Match {
  readonly endpoint: Endpoint
  readonly pathValues: Readonly<Record<string, string>>
}

interface Pattern {
  readonly endpoint: Endpoint
  readonly segments: readonly string[]
}

/** A pattern whose only placeholder is its last segment, which most are: found by what stands before it. */
interface LastSegmentPattern {
  readonly endpoint: Endpoint
  readonly name: string
}

const NO_VALUES: Readonly<Record<string, string>> = Object.freeze({})

/** The name inside `{name}`, or `undefined` for a literal segment. */
function placeholderName(segment: string): string | undefined {
  return /^\{(\w+)\}$/.exec(segment)?.[1]
}

function decodeSegment(segment: string, name: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    const detail = `${quote(segment)} is not valid percent-encoded UTF-8.`
    throw new ApiError('invalid_parameter', detail, { errors: [{ parameter: name, detail }] })
  }
}

function matchPattern(pattern: Pattern, segments: readonly string[]): Match | undefined {
  if (segments.length !== pattern.segments.length) return undefined
  const placeholders: [string, string][] = []
  for (const [index, expected] of pattern.segments.entries()) {
    const segment = segments[index] ?? ''
    const name = placeholderName(expected)
    if (name === undefined ? segment !== expected : segment === '') return undefined
    if (name !== undefined) placeholders.push([name, segment])
  }
  const pathValues = Object.fromEntries(placeholders.map(([name, text]) => [name, decodeSegment(text, name)]))
  return { endpoint: pattern.endpoint, pathValues }
}

export class Router {
  readonly #exact = new Map<string, Endpoint>()
  readonly #byPrefix = new Map<string, LastSegmentPattern>()
  readonly #patterns: Pattern[] = []

  constructor(endpoints: readonly Endpoint[]) {
    for (const endpoint of endpoints) {
      const segments = endpoint.path.split('/')
      const placeholders = segments.filter((segment) => placeholderName(segment) !== undefined)
      const lastName = placeholderName(segments.at(-1) ?? '')
      if (placeholders.length === 0) this.#exact.set(endpoint.path, endpoint)
      else if (placeholders.length === 1 && lastName !== undefined) {
        const prefix = endpoint.path.slice(0, endpoint.path.lastIndexOf('/'))
        if (!this.#byPrefix.has(prefix)) this.#byPrefix.set(prefix, { endpoint, name: lastName })
      } else this.#patterns.push({ endpoint, segments })
    }
  }

  /** The endpoint of a raw (still encoded) path; `undefined` when there is none. Throws on a malformed path value. */
  find(path: string): Match | undefined {
    const endpoint = this.#exact.get(path)
    if (endpoint !== undefined) return { endpoint, pathValues: NO_VALUES }
    const lastSlash = path.lastIndexOf('/')
    const known = lastSlash + 1 === path.length ? undefined : this.#byPrefix.get(path.slice(0, lastSlash))
    if (known !== undefined) {
      const value = decodeSegment(path.slice(lastSlash + 1), known.name)
      return { endpoint: known.endpoint, pathValues: { [known.name]: value } }
    }
    if (this.#patterns.length === 0) return undefined
    const segments = path.split('/')
    for (const pattern of this.#patterns) {
      const match = matchPattern(pattern, segments)
      if (match !== undefined) return match
    }
    return undefined
  }
}
