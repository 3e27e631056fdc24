// What caches are told. Answers for everybody may be kept by caches that many share; where API keys are asked for only
// the client's own cache may keep them.

export class CachePolicy {
  /** Ask every time whether the kept answer still holds. */
  readonly revalidate: string
  /** The answer never changes. */
  readonly immutable: string

  constructor({ isShared }: { readonly isShared: boolean }) {
    this.revalidate = isShared ? 'no-cache' : 'private, no-cache'
    this.immutable = `${isShared ? 'public' : 'private'}, max-age=31536000, immutable`
  }
}
