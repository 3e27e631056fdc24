// Behaviour of the Python client beyond what both clients share.

import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { PYTHON, PYTHON_ENVIRONMENT, pythonWith, withoutPython } from '../support/client-drivers.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'

const file = serviceOfThisFile()
const run = promisify(execFile)
const python = pythonWith('pyarrow')

async function passes(program: string, path = PYTHON): Promise<void> {
  await run(path ?? '', ['-c', program, file.service.url], { env: PYTHON_ENVIRONMENT })
}

const BYTES = `
import sys, bookcast
answer = bookcast.Client(sys.argv[1]).lob(series="KXHIGHNY", date="2026-07-01", interval=600, format="csv")
opened = []
sent = bookcast.Answer._open
bookcast.Answer._open = lambda *given: opened.append(given) or sent(*given)
answer.iter_bytes().close()
assert opened == [], opened
assert b"".join(answer.iter_bytes()).startswith(b"ts,market_id"), opened`

test('the Python client does not request bytes that are not read', { skip: withoutPython }, () =>
  passes(BYTES),
)

const HINTS = `
import bookcast, inspect, typing
for of in (bookcast.Answer, bookcast.Client):
    for _, method in inspect.getmembers(of, inspect.isfunction):
        typing.get_type_hints(method)`

test('the oldest Python resolves all types', { skip: withoutPython }, () => passes(HINTS))

const HOSTS = `
import bookcast
for address in ("http://a..b", "http://" + "a" * 70 + ".test", "http://localhost:1/\\u00e4"):
    try:
        bookcast.Client(address, attempts=1).live()
    except bookcast.ConnectionError:
        continue
    raise AssertionError(address)`

test('an invalid host name is an error of the client', { skip: withoutPython }, () => passes(HOSTS))

const THREADS = `
import os, sys, bookcast, pyarrow.parquet
pyarrow.cpu_count()
def threads(): return len(os.listdir("/proc/self/task"))
before = threads()
bookcast.Client(sys.argv[1]).lob(series="KXHIGHNY", date="2026-07-01", interval=600).to_arrow()
assert threads() == before, (before, threads())`

const noThreads =
  python === null || process.platform !== 'linux' ? 'no Python with pyarrow is installed, or no Linux' : false

test('Arrow is used without threads, which can crash a process at its exit', { skip: noThreads }, () =>
  passes(THREADS, python),
)
