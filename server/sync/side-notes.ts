// The journal of one direction, by side: a push notes the lake as its source, a pull as its target.

import type { ListedObject, WrittenObject } from './object-store.ts'
import type { SyncJournal } from './sync-journal.ts'

type Version = Pick<ListedObject | WrittenObject, 'version'> | undefined

export class SideNotes {
  readonly #journal: SyncJournal
  readonly #isPush: boolean

  constructor(journal: SyncJournal, isPush: boolean) {
    this.#journal = journal
    this.#isPush = isPush
  }

  /** Whether both sides have the object and are known to hold the same. */
  isEqual(key: string, own: Version, other: Version): boolean {
    if (own === undefined || other === undefined) return false
    const known = this.#versionsOf(key)
    return known.own === own.version && known.other === other.version
  }

  /** Notes that both sides hold the same. */
  async note(key: string, own: NonNullable<Version>, other: NonNullable<Version>): Promise<void> {
    if (this.isEqual(key, own, other)) return
    const [source, target] = this.#isPush ? [own, other] : [other, own]
    await this.#journal.noteEqual(key, source.version, target.version)
  }

  /** Which side has changed an object since both held the same. */
  changeOf(key: string, own: Version, other: Version): 'local' | 'remote' | 'both' {
    const known = this.#versionsOf(key)
    if (known.own === own?.version) return 'remote'
    return known.other === other?.version ? 'local' : 'both'
  }

  /** Notes a content before it is written, if the journal is one of this direction. */
  async noteOwn(key: string, sha256: string, direction: 'pull' | 'push'): Promise<void> {
    if ((direction === 'push') === this.#isPush) await this.#journal.noteOwn(key, sha256)
  }

  #versionsOf(key: string) {
    const { sourceVersion, targetVersion } = this.#journal.get(key) ?? {}
    return this.#isPush
      ? { own: sourceVersion, other: targetVersion }
      : { own: targetVersion, other: sourceVersion }
  }
}
