// The TypeScript client in a runtime other than Node: run by Deno or Bun, it makes the calls that it reads line by line and prints
// the result of each.

import { createInterface } from 'node:readline'
import type * as client from '../../clients/typescript/bookcast.ts'
import { callClient, type ClientCall } from './typescript-calls.ts'

const bookcast = (await import(
  new URL('../../site/clients/bookcast.js', import.meta.url).href
)) as typeof client

for await (const line of createInterface({ input: process.stdin })) {
  const result = await callClient(bookcast, JSON.parse(line) as ClientCall)
  process.stdout.write(`${JSON.stringify(result)}\n`)
}
