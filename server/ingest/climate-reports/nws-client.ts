// The newest climate reports from the NWS API: a list of the last week's products per place, then each new product once. The list
// request is conditional; products never change. The caller keeps what is seen of a place: a product counts as seen only after it is
// stored, so neither a failing store nor a failing product loses a report.

import { BoundedMap } from '../../../shared/bounded-map.ts'
import { isJsonObject } from '../../../shared/parsed-json.ts'
import { SYSTEM_CLOCK } from '../../tasks/clock.ts'
import { withoutFuture } from '../future-reports.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import { type ClientOptions, UpstreamHttp, type Validators } from '../../upstream/upstream-http.ts'
import { type ClimateReport, parseClimateText } from './parse.ts'

/** New products fetched in one poll of the NWS API; its list of one place covers a week and has about 14. */
const NWS_PRODUCTS_PER_POLL_MAX = 50

/** The products of a place that were fetched and stored, as JSON. */
export interface SeenProducts {
  /** Of the list; null while a product of it is still missing. */
  readonly validators: Validators | null
  readonly ids: readonly string[]
}

const NOTHING_SEEN: SeenProducts = { ids: [], validators: null }

type ListedProduct = NonNullable<ReturnType<typeof readProduct>>

const UPSTREAM = 'nws'
// The API documents no limit. This lets one poll of all stations through and spaces the product requests that follow.
const RATE = { burst: 20, intervalMs: 500 } as const
/** Failed products that are remembered. */
const FAILED_MAX = 1_000
const ACCEPT = { accept: 'application/ld+json' }
const PRODUCT_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export class NwsClient extends UpstreamHttp {
  readonly #nowMs: () => number
  /** Products whose last fetch failed, with the sequence number of the failure. */
  readonly #failed = new BoundedMap<number>(FAILED_MAX)
  #failures = 0

  constructor(options: ClientOptions) {
    super({ ...options, name: UPSTREAM, rate: RATE })
    this.#nowMs = () => (options.clock ?? SYSTEM_CLOCK).nowMs()
  }

  /**
   * The reports that are not among the seen ones. `place` is the three letters after CLI, for example `NYC`. Throws `UpstreamError`
   * if the list cannot be fetched.
   */
  async poll(place: string, seen: SeenProducts = NOTHING_SEEN, signal?: AbortSignal) {
    const answer = await this.fetch({
      path: `/products/types/CLI/locations/${encodeURIComponent(place)}`,
      headers: ACCEPT,
      validators: seen.validators ?? undefined,
      signal,
    })
    if (answer === null) return { reports: [], errors: [], failures: [], seen: null }
    const list = this.#readList(answer.body)
    const known = new Set(seen.ids)
    // A product that fails every time must not delay the others.
    const failureOf = ({ id }: ListedProduct): number => this.#failed.get(id) ?? 0
    const fresh = list.products
      .filter(({ id }) => !known.has(id))
      .toSorted((a, b) => failureOf(a) - failureOf(b))
    const { fetched, failures, ...batch } = await this.#fetchProducts(fresh, signal)
    // The products that count as seen once the reports are stored.
    const now: SeenProducts = {
      ids: list.products.map(({ id }) => id).filter((id) => known.has(id) || fetched.has(id)),
      // While a product is missing, the next poll needs the full list again.
      validators: fetched.size === fresh.length && list.failures.length === 0 ? answer.validators : null,
    }
    // The next poll requests these products, and list entries that could not be read, again.
    return { ...batch, failures: [...list.failures, ...failures], seen: now }
  }

  async #fetchProducts(products: readonly ListedProduct[], signal: AbortSignal | undefined) {
    const reports: ClimateReport[] = []
    const errors: string[] = []
    const failures: UpstreamError[] = []
    const fetched = new Set<string>()
    for (const { id } of products.slice(0, NWS_PRODUCTS_PER_POLL_MAX)) {
      try {
        const parsed = parseClimateText(await this.#fetchText(id, signal))
        reports.push(...parsed.reports)
        errors.push(...parsed.errors)
        fetched.add(id)
        this.#failed.delete(id)
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error
        failures.push(error)
        this.#failed.set(id, ++this.#failures)
        // A single product may be broken. If the upstream is down or busy, do not request the others.
        if (error.failure !== 'rejected' && error.failure !== 'malformed') break
      }
    }
    return { reports, errors, failures, fetched }
  }

  async #fetchText(id: string, signal: AbortSignal | undefined): Promise<string> {
    const product = await this.fetchObject({ path: `/products/${id}`, headers: ACCEPT, signal })
    if (product['id'] !== id || typeof product['productText'] !== 'string') {
      throw this.malformed(`product ${id} has no text or another id`)
    }
    return product['productText']
  }

  /** The listed products, oldest first, and errors for unreadable entries. Throws if no entry can be read. */
  #readList(body: Buffer) {
    const items = this.readObject(body)['@graph']
    if (!Array.isArray(items)) throw this.malformed('the product list has no @graph')
    const products: ListedProduct[] = []
    const failures: UpstreamError[] = []
    for (const item of items as unknown[]) {
      const product = readProduct(item)
      if (product !== undefined) products.push(product)
      else
        failures.push(
          this.malformed(`a listed product cannot be read: ${JSON.stringify(item).slice(0, 120)}`),
        )
    }
    if (products.length === 0 && failures[0] !== undefined) throw failures[0]
    const byTime = withoutFuture(
      products,
      ({ issuedAtMs }) => issuedAtMs,
      ({ id }) => id,
      this.#nowMs(),
    )
    failures.push(...byTime.problems.map((problem) => this.malformed(problem)))
    return { products: byTime.told.toSorted((a, b) => a.issuedAtMs - b.issuedAtMs), failures }
  }
}

function readProduct(item: unknown) {
  const { id, issuanceTime, productCode } = isJsonObject(item) ? item : {}
  const issuedAtMs = typeof issuanceTime === 'string' ? Date.parse(issuanceTime) : Number.NaN
  if (typeof id !== 'string' || !PRODUCT_ID.test(id)) return undefined
  return productCode !== 'CLI' || Number.isNaN(issuedAtMs) ? undefined : { id, issuedAtMs }
}
