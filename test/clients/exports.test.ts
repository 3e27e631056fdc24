// Both clients check exports in the same way: complete ones, and ones with a wrong, a missing or a foreign file.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { appendFile, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { bookcast, PYTHON, PYTHON_ENVIRONMENT, withoutPython } from '../support/client-drivers.ts'
import { exported, exportThreads, planned } from '../support/exports.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const PROGRAM = 'import bookcast, json, sys; print(json.dumps(bookcast.verify_export(sys.argv[1])))'

async function verifyWithPython(place: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)(PYTHON ?? '', ['-c', PROGRAM, place], {
    env: PYTHON_ENVIRONMENT,
  })
  return JSON.parse(stdout) as string[]
}

for (const [name, verify, skip] of [
  ['TypeScript', bookcast.verifyExport, false],
  ['Python', verifyWithPython, withoutPython],
] as const)
  test(`the ${name} client checks an export in a directory and at an address`, { skip }, async (t) => {
    const out = await temporaryDirectory(t)
    const plan = await planned(exportThreads(t, SAMPLE_LAKE), {
      dataset: 'lob',
      scopes: ['KXHIGHNY'],
      range: { from: '2026-07-01', to: '2026-07-03' },
      parameters: { interval: '3600', format: 'csv' },
      target: out,
    })
    await exported(exportThreads(t, SAMPLE_LAKE), plan)
    const server = createServer((request, response) => {
      void readFile(join(out, decodeURIComponent(request.url ?? ''))).then(
        (bytes) => response.end(bytes),
        () => response.writeHead(404).end(),
      )
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    assert.deepEqual([await verify(out), await verify(address)], [[], []])
    const [first, second, third] = plan.parts.map(({ key }) => key)
    await appendFile(join(out, first!), 'x')
    const bytes = await readFile(join(out, second!))
    bytes[40]! ^= 1
    await writeFile(join(out, second!), bytes)
    await rm(join(out, third!))
    await rm(join(out, 'SHA256SUMS'))
    await writeFile(join(out, 'other'), '')
    const problems = await verify(address)
    assert.equal(problems.length, 4)
    for (const [index, wanted] of [
      'SHA256SUMS is missing',
      `${first} has `,
      `${second} has SHA-256 `,
      `${third} is missing`,
    ].entries())
      assert.ok(problems[index]?.startsWith(wanted), problems[index])
    assert.deepEqual(await verify(out), [...problems, 'other is not part of this export'])
    const trades = await temporaryDirectory(t)
    const traded = await planned(exportThreads(t, SAMPLE_LAKE), {
      dataset: 'trades',
      scopes: null,
      range: { from: '2026-07-01', to: '2026-07-03' },
      parameters: { format: 'ndjson' },
      target: trades,
    })
    await exported(exportThreads(t, SAMPLE_LAKE), traded)
    assert.deepEqual(await verify(trades), [])
    await appendFile(join(trades, traded.parts[2]!.key), 'x')
    assert.ok((await verify(trades))[0]?.startsWith(`${traded.parts[2]!.key} has `))
    await rm(join(out, 'manifest.json'))
    await assert.rejects(verify(out), /is not a finished export: it has no manifest\.json/)
  })
