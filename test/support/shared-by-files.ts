// Values shared by the test files of one process, if run.ts puts several into one: made before the first file's tests, ended after
// the last file's. A file that runs alone has its own value.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'

interface Made<T> {
  readonly value: T
  readonly end: () => Promise<void>
}

export class SharedByFiles<T> {
  readonly #make: () => Promise<Made<T>>
  readonly #between: (value: T) => Promise<void>
  #files = 0
  #made: Made<T> | undefined

  /** @param between runs after the tests of a file if another file follows */
  constructor(make: () => Promise<Made<T>>, between: (value: T) => Promise<void> = async () => {}) {
    this.#make = make
    this.#between = between
  }

  /** Call it at the top level of a test file: the value exists while the file's tests run. */
  ofThisFile(): () => T {
    this.#files += 1
    before(async () => {
      this.#made ??= await this.#make()
    })
    after(async () => {
      this.#files -= 1
      const made = this.#made
      if (made === undefined) return
      if (this.#files > 0) return this.#between(made.value)
      this.#made = undefined
      await made.end()
    })
    return () => {
      assert.ok(this.#made !== undefined, 'it exists only while the tests run')
      return this.#made.value
    }
  }
}
