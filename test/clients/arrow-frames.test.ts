// With pyarrow, to_df reads parquet and gives the same frame as the rows. Also tests its columns without any library.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { PYTHON, PYTHON_ENVIRONMENT, pythonWith, withoutPython } from '../support/client-drivers.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'

const file = serviceOfThisFile()
const python = pythonWith('pandas, pyarrow')
const skip =
  python === null ? 'no Python with pandas and pyarrow is installed (BOOKCAST_TEST_PYTHON names one)' : false

const JULY_1 = { start: '2026-07-01', end: '2026-07-01' }
const CALLS = [
  ['lob', { series: 'KXHIGHNY', date: '2026-07-01', interval: 600 }],
  ['lob', { series: 'KXHIGHNY', date: '2026-07-01', interval: 600, levels: 2, nulls: false }],
  ['lob', { series: 'KXHIGHNY', date: '2026-07-01', interval: 600, columns: ['mid', 'ts', 'best_ask'] }],
  ['candles', { series: 'KXHIGHNY', ...JULY_1, interval: 60, fill: false, tz: 'station' }],
  ['observations', { station: 'NYC', ...JULY_1 }],
  ['observations', { station: 'NYC', ...JULY_1, limit: 7 }],
  ['observations', { station: 'NYC', start: '2020-01-01', end: '2020-01-01' }],
  ['climate', { start: '2026-06-20', end: '2026-07-03' }],
  ['coverage', { series: 'KXHIGHNY-26JUL01', ...JULY_1 }],
  ['coverage', { series: 'KXHIGHNY', by: 'hour' }],
]

const PROGRAM = `
import json, sys, bookcast
from pandas.testing import assert_frame_equal
client = bookcast.Client(sys.argv[1])
read_rows = bookcast.Answer._batches
for method, parameters in json.loads(sys.argv[2]):
    frame = getattr(client, method)(**parameters, format="ndjson").to_df()
    # Where rows are read after all, this fails.
    bookcast.Answer._batches = None
    assert_frame_equal(getattr(client, method)(**parameters).to_df(), frame)
    bookcast.Answer._batches = read_rows
    print(method)`

test('to_df is the same through Arrow and through rows', { skip }, async () => {
  const args = ['-c', PROGRAM, file.service.url, JSON.stringify(CALLS)]
  const { stdout } = await promisify(execFile)(python ?? '', args, { env: PYTHON_ENVIRONMENT })
  assert.deepEqual(
    stdout.trimEnd().split('\n'),
    CALLS.map(([method]) => method),
  )
})

const STAND_IN = `
import json, sys, types, bookcast
class Series(list):
    def __init__(self, values, dtype=None): super().__init__(values)
    def astype(self, dtype): return self
pandas = types.ModuleType("pandas")
pandas.__version__, pandas.Series, pandas.to_datetime = "2", Series, lambda values, **options: values
pandas.DataFrame = lambda series, columns: {name: series[name] for name in columns}
sys.modules.update(pandas=pandas, pyarrow=None)
client = bookcast.Client(sys.argv[1])
for method, parameters in json.loads(sys.argv[2]):
    rows = getattr(client, method)(**parameters).to_list()
    frame = getattr(client, method)(**parameters).to_df(raw=True)
    assert not rows or frame == {name: [row[name] for row in rows] for name in rows[0]}, (method, list(frame))
    print(method)`

test('to_df has the columns of the rows', { skip: withoutPython }, async () => {
  const args = ['-c', STAND_IN, file.service.url, JSON.stringify(CALLS)]
  const { stdout } = await promisify(execFile)(PYTHON ?? '', args, { env: PYTHON_ENVIRONMENT })
  assert.deepEqual(
    stdout.trimEnd().split('\n'),
    CALLS.map(([method]) => method),
  )
})
