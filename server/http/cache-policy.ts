// Cache-Control values. Without API keys, shared caches may store answers; with API keys, only the client's own cache may
// store them.

export class CachePolicy {
  /** Revalidate the stored answer with every request. */
  readonly revalidate: string
  /** The answer never changes. */
  readonly immutable: string

  constructor({ isShared }: { readonly isShared: boolean }) {
    this.revalidate = isShared ? 'no-cache' : 'private, no-cache'
    this.immutable = `${isShared ? 'public' : 'private'}, max-age=31536000, immutable`
  }
}
