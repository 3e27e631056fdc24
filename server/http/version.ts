// The version of this program, from its package.json.

import { readFileSync } from 'node:fs'

export function readVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  const { version }: { version: string } = JSON.parse(text)
  return version
}
