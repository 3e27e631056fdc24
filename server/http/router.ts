// Finds the endpoint of a path: an exact match, else the endpoint whose last segment is a placeholder, `{name}`. The whole
// path must match: no trailing slash, no prefix.

import { ApiError } from '../../shared/errors.ts'
import { quote } from '../query/parameter-parser.ts'
import type { Endpoint } from './endpoint.ts'

const NO_VALUES: Readonly<Record<string, string>> = Object.freeze({})

function decodeSegment(segment: string, name: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    const detail = `${quote(segment)} is not valid percent-encoded UTF-8.`
    throw new ApiError('invalid_parameter', detail, { errors: [{ parameter: name, detail }] })
  }
}

export class Router {
  readonly #exact = new Map<string, Endpoint>()
  /** Endpoints whose last segment is a placeholder, with its name, by the path before it. */
  readonly #byPrefix = new Map<string, { readonly endpoint: Endpoint; readonly name: string }>()

  /** @throws {Error} for a placeholder that is not the last segment of its path */
  constructor(endpoints: readonly Endpoint[]) {
    for (const endpoint of endpoints) {
      const [prefix, last] = splitLast(endpoint.path)
      const name = /^\{(\w+)\}$/.exec(last)?.[1]
      if (prefix.includes('{'))
        throw new Error(`${endpoint.path}: only the last segment may be a placeholder`)
      if (name === undefined) this.#exact.set(endpoint.path, endpoint)
      else if (!this.#byPrefix.has(prefix)) this.#byPrefix.set(prefix, { endpoint, name })
    }
  }

  /** The endpoint of a raw (still encoded) path; `undefined` when there is none. Throws on a malformed path value. */
  find(path: string) {
    const endpoint = this.#exact.get(path)
    if (endpoint !== undefined) return { endpoint, pathValues: NO_VALUES }
    const [prefix, last] = splitLast(path)
    const known = last === '' ? undefined : this.#byPrefix.get(prefix)
    if (known === undefined) return undefined
    return { endpoint: known.endpoint, pathValues: { [known.name]: decodeSegment(last, known.name) } }
  }
}

function splitLast(path: string): readonly [prefix: string, last: string] {
  const slash = path.lastIndexOf('/')
  return [path.slice(0, Math.max(slash, 0)), path.slice(slash + 1)]
}
