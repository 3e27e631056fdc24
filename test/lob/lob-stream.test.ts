// The merge of one answer's sections with hand-driven workers: orders of events that are rare with real threads, and failures
// at every point.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import fc from 'fast-check'
import { LobStream, LOB_SECTION_WINDOW } from '../../server/lob/lob-stream.ts'
import { LOB_SECTION_CHUNKS_MAX } from '../../shared/limits.ts'
import type { LobHead } from '../../shared/lob-task.ts'
import { type HandWorker, handWorker } from '../support/hand-worker.ts'

async function openAnswer({ workers, sections, rows }: { workers: number; sections: number; rows: number }) {
  const client = new AbortController()
  const head: LobHead = {
    kind: 'head',
    rows,
    lastRow: null,
    missingDates: [],
    partialDates: [],
    files: [],
    stamps: [],
    identity: 'i',
    writtenAtMs: 0,
    isHeld: false,
    sections: { count: sections, next: new SharedArrayBuffer(4) },
  }
  const all = Array.from({ length: workers }, (_, index) =>
    handWorker(client.signal, { hasHead: index === 0 }),
  ) as [HandWorker, ...HandWorker[]]
  all[0].say(head)
  all[0].saySection(0, ['<0>'], false)
  await all[0].stream.ready()
  const stream = new LobStream(all[0].stream, () => all.slice(1).map((worker) => worker.stream))
  stream.askForHelp()
  return { client, all, stream }
}

async function turns(count = 4): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

async function nextText(stream: LobStream): Promise<string | null> {
  const chunk = await stream.next()
  return chunk === null ? null : new TextDecoder().decode(chunk)
}

async function readAll(stream: LobStream): Promise<string> {
  let text = ''
  for (let part = await nextText(stream); part !== null; part = await nextText(stream)) text += part
  return text
}

async function closeAll(stream: LobStream, all: readonly HandWorker[]): Promise<void> {
  const closing = stream.close()
  for (const worker of all) worker.endTask()
  await closing
  for (const { counts } of all) assert.equal(counts.over, 1)
}

test('returns sections in order, whichever worker makes them and whenever their messages arrive', async () => {
  const plans = fc.record({
    workers: fc.integer({ min: 2, max: 4 }),
    // For each section, its worker and its number of chunks.
    makers: fc
      .array(fc.record({ worker: fc.nat({ max: 3 }), chunks: fc.integer({ min: 1, max: 3 }) }), {
        minLength: 1,
        maxLength: 12,
      })
      // One worker must be able to make all of them before the reader starts.
      .filter((makers) => makers.reduce((sum, { chunks }) => sum + chunks, 1) <= LOB_SECTION_WINDOW),
    order: fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 30 }),
    pauses: fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 10 }),
    isReaderFirst: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(plans, async ({ workers, makers, order, pauses, isReaderFirst }) => {
      const { all, stream } = await openAnswer({ workers, sections: makers.length, rows: makers.length })
      const scripts: (() => void)[][] = all.map(() => [])
      const rows = all.map(() => 0)
      let expected = '<0>'
      for (const [section, { worker: wanted, chunks }] of makers.entries()) {
        const maker = section === 0 ? 0 : wanted % workers
        const script = scripts[maker]!
        const worker = all[maker]!
        rows[maker]! += 1
        const texts = Array.from({ length: chunks }, (_, index) => `<${section}.${index}>`)
        expected += texts.join('')
        if (section > 0) script.push(() => worker.say({ kind: 'section', section, isOver: false }))
        for (const text of texts) script.push(() => worker.sayChunk(text))
        script.push(() => worker.say({ kind: 'section', section, isOver: true }))
      }
      for (const [index, worker] of all.entries()) {
        scripts[index]!.push(
          () => worker.sayEnd(rows[index]!),
          () => worker.endTask(),
        )
      }
      const reading = isReaderFirst ? readAll(stream) : undefined
      for (let step = 0; scripts.some(({ length }) => length > 0); step++) {
        const candidates = scripts.filter(({ length }) => length > 0)
        candidates[order[step % order.length]! % candidates.length]!.shift()!()
        await turns(pauses[step % pauses.length])
      }
      assert.equal(await (reading ?? readAll(stream)), expected)
      assert.equal(stream.rows, makers.length)
      await closeAll(stream, all)
    }),
    { numRuns: 100 },
  )
})

test('returns every buffer to its worker, also where the next section is of another worker', async () => {
  const { all, stream } = await openAnswer({ workers: 2, sections: 3, rows: 3 })
  const [leader, assistant] = all as unknown as [HandWorker, HandWorker]
  leader.say({ kind: 'section', section: 0, isOver: true })
  assistant.saySection(1, ['<1.0>', '<1.1>'])
  leader.saySection(2, ['<2>'], false)
  const creditsOf = ({ heard, texts }: HandWorker): string[] =>
    heard.flatMap((message) => (message.kind === 'credit' ? [texts[message.number]!] : []))
  assert.equal(await nextText(stream), '<0>')
  assert.equal(await nextText(stream), '<1.0>')
  await turns()
  assert.deepEqual([creditsOf(leader), creditsOf(assistant)], [['<0>'], []])
  assert.equal(await nextText(stream), '<1.1>')
  assert.equal(await nextText(stream), '<2>')
  await turns()
  assert.deepEqual([creditsOf(leader), creditsOf(assistant)], [['<0>'], ['<1.0>', '<1.1>']])
  const waiting = nextText(stream)
  await turns()
  assert.deepEqual(creditsOf(leader), ['<0>', '<2>'])
  leader.sayChunk('<3>')
  assert.equal(await waiting, '<3>')
  await closeAll(stream, all)
})

test('requests assistants once, at the second chunk at the latest, and not after it is closed', async () => {
  const client = new AbortController()
  for (const isClosed of [false, true]) {
    const leader = handWorker(client.signal, { hasHead: true })
    leader.say({
      kind: 'head',
      rows: 2,
      lastRow: null,
      missingDates: [],
      partialDates: [],
      files: [],
      stamps: [],
      identity: 'i',
      writtenAtMs: 0,
      isHeld: false,
      sections: { count: 2, next: new SharedArrayBuffer(4) },
    })
    leader.saySection(0, ['<0>', '<1>'])
    await leader.stream.ready()
    let asked = 0
    const stream = new LobStream(leader.stream, () => {
      asked++
      return []
    })
    assert.equal(await nextText(stream), '<0>')
    assert.equal(asked, 0)
    if (isClosed) {
      const closing = stream.close()
      leader.endTask()
      await closing
      stream.askForHelp()
      assert.equal(asked, 0)
      continue
    }
    assert.equal(await nextText(stream), '<1>')
    stream.askForHelp()
    assert.equal(asked, 1)
    await closeAll(stream, [leader])
  }
})

test('waits for the next section in order until it arrives or the client disconnects', async () => {
  const { client, all, stream } = await openAnswer({ workers: 3, sections: 3, rows: 3 })
  all[0].say({ kind: 'section', section: 0, isOver: true })
  all[2]!.saySection(2, ['<2>'])
  assert.equal(await nextText(stream), '<0>')
  let isSettled = false
  const waiting = nextText(stream).finally(() => (isSettled = true))
  const rejected = assert.rejects(waiting, /the client is gone/)
  await turns()
  assert.equal(isSettled, false)
  client.abort()
  await rejected
  await assert.rejects(stream.next(), /the client is gone/)
  const closing = stream.close()
  for (const worker of all) {
    while (worker.heard.at(-1)?.kind !== 'cancel') await once(worker.port, 'message')
    worker.endTask()
  }
  await closing
})

for (const [what, fail, code] of [
  ['an assistant dies', (worker: HandWorker) => worker.endTask(new Error('exited')), 'worker_failed'],
  ['an assistant returns without a word', (worker: HandWorker) => worker.endTask(), 'worker_failed'],
  [
    'an assistant fails',
    (worker: HandWorker) => {
      worker.say({ kind: 'error', code: 'lake_file_changed', detail: 'changed', errors: [] })
      worker.endTask()
    },
    'lake_file_changed',
  ],
] as const) {
  test(`breaks off when ${what} in the middle of its section, after the chunks before it`, async () => {
    const { all, stream } = await openAnswer({ workers: 2, sections: 3, rows: 3 })
    all[0].say({ kind: 'section', section: 0, isOver: true })
    all[1]!.saySection(1, ['<1.0>'], false)
    all[0].saySection(2, ['<2>'])
    all[0].sayEnd(2)
    all[0].endTask()
    assert.equal(await nextText(stream), '<0>')
    assert.equal(await nextText(stream), '<1.0>')
    const waiting = assert.rejects(stream.next(), { code })
    await turns()
    fail(all[1]!)
    await waiting
    await assert.rejects(stream.next(), { code })
    await closeAll(stream, all)
  })
}

test('breaks off when the leader dies, even if an assistant continues', async () => {
  const { all, stream } = await openAnswer({ workers: 2, sections: 4, rows: 4 })
  all[0].endTask(new Error('exited'))
  all[1]!.saySection(1, ['<1>'])
  assert.equal(await nextText(stream), '<0>')
  await assert.rejects(stream.next(), { code: 'worker_failed' })
  await closeAll(stream, all)
})

test('an assistant that makes no section does not affect the answer', async () => {
  const { all, stream } = await openAnswer({ workers: 3, sections: 2, rows: 2 })
  for (const assistant of all.slice(1)) {
    assistant.sayEnd(0)
    assistant.endTask()
  }
  all[0].say({ kind: 'section', section: 0, isOver: true })
  all[0].saySection(1, ['<1>'])
  all[0].sayEnd(2)
  all[0].endTask()
  assert.equal(await readAll(stream), '<0><1>')
  assert.equal(stream.rows, 2)
  await closeAll(stream, all)
})

for (const [what, sections, rows] of [
  ['a row is missing', 2, 3],
  ['a section is missing', 3, 2],
] as const) {
  test(`fails instead of ending normally when ${what}`, async () => {
    const { all, stream } = await openAnswer({ workers: 2, sections, rows })
    all[0].say({ kind: 'section', section: 0, isOver: true })
    all[0].sayEnd(1)
    all[0].endTask()
    all[1]!.saySection(1, ['<1>'])
    all[1]!.sayEnd(1)
    all[1]!.endTask()
    await assert.rejects(readAll(stream), /rows/)
    await closeAll(stream, all)
  })
}

test('fails instead of ending normally when a single thread made too few rows', async () => {
  const { all, stream } = await openAnswer({ workers: 1, sections: 2, rows: 3 })
  all[0].sayEnd(2)
  all[0].endTask()
  await assert.rejects(readAll(stream), /^Error: 2 rows were made instead of 3/)
  await closeAll(stream, all)
})

test('gives only dismissed assistants room for one more section', async () => {
  const { all, stream } = await openAnswer({ workers: 2, sections: 9, rows: 9 })
  const [leader, assistant] = all as unknown as [HandWorker, HandWorker]
  await turns()
  assert.deepEqual(
    [leader.heard, assistant.heard],
    [[{ kind: 'window', chunks: LOB_SECTION_WINDOW }], [{ kind: 'window', chunks: LOB_SECTION_WINDOW }]],
  )
  stream.dismissAssistants()
  await turns()
  const room = LOB_SECTION_WINDOW + LOB_SECTION_CHUNKS_MAX
  // The order matters: an assistant with more room that is not yet dismissed would take another section.
  assert.deepEqual(assistant.heard.slice(1), [{ kind: 'dismiss' }, { kind: 'window', chunks: room }])
  assert.equal(leader.heard.length, 1)
  assistant.saySection(
    1,
    Array.from({ length: room }, () => 'x'),
    false,
  )
  await turns()
  assert.equal(assistant.counts.terminated, 0)
  assistant.sayChunk('x')
  await turns()
  assert.equal(assistant.counts.terminated, 1)
  leader.saySection(
    0,
    Array.from({ length: LOB_SECTION_WINDOW }, () => 'x'),
    false,
  )
  await turns()
  assert.equal(leader.counts.terminated, 1)
  await closeAll(stream, all)
})
