// A program that answers every line of JSON with one line, as long as a test file needs it.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export class LineProcess {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>
  #errors = ''

  constructor(program: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.#child = spawn(program, args, { env })
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
  }

  /** Send one question at a time. */
  async ask(question: object): Promise<unknown> {
    this.#child.stdin.write(`${JSON.stringify(question)}\n`)
    const { done, value } = await this.#lines.next()
    if (done === true) throw new Error(`${this.#child.spawnfile} ended: ${this.#errors}`)
    return JSON.parse(value) as unknown
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const closed = once(this.#child, 'close')
    this.#child.stdin.end()
    await closed
  }
}
