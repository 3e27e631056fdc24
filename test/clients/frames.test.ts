// Frames of the Python client against the rows of the JSON response: values, nulls and types. If a library is not installed,
// its tests are skipped.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import type { RecordField } from '../../shared/record-field.ts'
import type { RecordFieldType } from '../../shared/record-field.ts'
import { RECORD_FIELDS, type RecordKind } from '../../shared/record-schema.ts'
import {
  PANDAS_PYTHON,
  PYTHON,
  PYTHON_ENVIRONMENT,
  PythonClient,
  pythonWith,
  withoutPython,
} from '../support/client-drivers.ts'
import { type JsonRecord, serviceOfThisFile } from '../support/conformance-service.ts'
import { queryWithDuckDb } from '../support/parquet-readers.ts'
import { startScripted } from '../support/scripted-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const file = serviceOfThisFile()
const withoutPandas =
  PANDAS_PYTHON === null ? 'no Python with pandas is installed (Debian: python3-pandas)' : false

interface Frame {
  readonly dtypes: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, readonly unknown[]>>
  readonly error?: { readonly message: string }
}

/** Loading pandas takes longer than making a frame, so one process makes all of them. */
let pandas: PythonClient | undefined
const withPandas = (): PythonClient => (pandas ??= new PythonClient(PANDAS_PYTHON ?? ''))
after(() => pandas?.close())

async function frameOf(method: string, parameters: object, raw = false): Promise<Frame> {
  const client = withPandas()
  const call = { url: file.service.url, method, parameters, action: 'frame', raw }
  const frame = (await client.raw(call)) as Frame
  assert.equal(frame.error, undefined)
  return frame
}

const INSTANT = 'datetime64[ns, UTC]'

/** A value of the JSON response as a value of a typed column. */
function framed(value: unknown, dtype: string): unknown {
  if (value === null) return null
  if (dtype === INSTANT) {
    const ms = typeof value === 'number' ? value / 1e6 : Date.parse(value as string)
    return new Date(ms).toISOString().replace('.000Z', '+00:00').replace('Z', '000+00:00')
  }
  return dtype === 'datetime64[ns]' ? `${value as string}T00:00:00` : value
}

const FRAMES: readonly (readonly [string, Record<string, unknown>, string, Record<string, string>])[] = [
  [
    'lob',
    { series: 'KXHIGHNY', date: '2026-07-01', interval: 600, levels: 2 },
    'lob?series=KXHIGHNY&date=2026-07-01&interval=600&levels=2&nulls=true',
    { ts: INSTANT, market_id: 'object', best_bid: 'Int64', spread: 'Int64', mid: 'float64', bids: 'object' },
  ],
  [
    'candles',
    { series: 'KXHIGHNY', start: '2026-07-01', end: '2026-07-01', interval: 60, tz: 'station' },
    'candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-01&interval=60&tz=station',
    { end_period_ts: INSTANT, open: 'int64', volume: 'int64', filled: 'bool' },
  ],
  [
    'observations',
    { station: 'NYC', start: '2026-07-01', end: '2026-07-02' },
    'observations?station=NYC&from=2026-07-01&to=2026-07-02',
    {
      observed_at: INSTANT,
      temp_f: 'float64',
      wind_dir_degrees: 'Int64',
      peak_wind_time: INSTANT,
      sky_cover_2: 'object',
    },
  ],
  [
    'climate',
    { start: '2026-06-20', end: '2026-07-03' },
    'climate?from=2026-06-20&to=2026-07-03',
    { observation_date: 'datetime64[ns]', issued_at: INSTANT, report_type: 'object' },
  ],
  ['series', {}, 'series', { active: 'bool', last_seen_at: INSTANT, tags: 'object' }],
  // The types are the same without rows.
  [
    'observations',
    { station: 'NYC', start: '2020-01-01', end: '2020-01-01' },
    'observations?station=NYC&from=2020-01-01&to=2020-01-01',
    { observed_at: INSTANT, temp_f: 'float64', wind_dir_degrees: 'Int64' },
  ],
]

test('to_df has the rows of the JSON response, with types and nulls', { skip: withoutPandas }, async () => {
  let nulls = 0
  for (const [method, parameters, target, dtypes] of FRAMES) {
    const rows = await file.service.rows(`/api/v1/${target}`)
    const frame = await frameOf(method, parameters)
    for (const [name, dtype] of Object.entries(dtypes))
      assert.equal(frame.dtypes[name], dtype, `${method} ${name}`)
    const names = Object.keys(rows[0] ?? frame.dtypes)
    assert.deepEqual(Object.keys(frame.dtypes), names)
    for (const name of names) {
      const wanted = rows.map((row) => framed(row[name], frame.dtypes[name] ?? ''))
      nulls += wanted.filter((value) => value === null).length
      assert.deepEqual(frame.values[name], wanted, `${method} ${name}`)
    }
  }
  assert.ok(nulls > 0, 'the sample has values that are not known')
})

test(
  'order books have missing values for zeros, unless the frame is raw',
  { skip: withoutPandas },
  async () => {
    const books = {
      series: 'KXHIGHNY',
      date: '2026-07-01',
      interval: 600,
      columns: ['best_ask', 'spread', 'mid'],
    }
    const rows = await file.service.rows(
      '/api/v1/lob?series=KXHIGHNY&date=2026-07-01&interval=600&columns=best_ask,spread,mid',
    )
    const missing = await frameOf('lob', books)
    assert.equal(
      missing.values['mid']?.filter((mid) => mid === null).length,
      rows.filter(({ mid }) => mid === 0).length,
    )
    assert.ok(missing.values['mid']?.every((mid) => mid !== 0))
    assert.ok(missing.values['mid']?.includes(null))
    const zeros = { best_ask: 'int64', spread: 'int64', mid: 'float64' }
    for (const frame of [
      await frameOf('lob', books, true),
      await frameOf('lob', { ...books, nulls: false }),
    ]) {
      assert.deepEqual(frame.dtypes, zeros)
      assert.deepEqual(
        frame.values['mid'],
        rows.map(({ mid }) => mid),
      )
    }
  },
)

test('instants with and without fractions can be in one column', { skip: withoutPandas }, async (t) => {
  const times = ['2026-07-02T05:00:00Z', '2026-07-02T05:00:00.250Z', null]
  const server = await startScripted(t, (_, response) => {
    const markets = times.map((time, index) => ({
      ticker: `M${index}`,
      event_ticker: 'E',
      series_ticker: 'S',
      status: 'closed',
      result: '',
      close_time: time,
    }))
    response.end(JSON.stringify(markets))
  })
  const call = { url: server.url, method: 'markets', action: 'frame' }
  const { values, dtypes } = (await withPandas().raw(call)) as Frame
  assert.equal(dtypes['close_time'], INSTANT)
  assert.deepEqual(values['close_time'], [
    '2026-07-02T05:00:00+00:00',
    '2026-07-02T05:00:00.250000+00:00',
    null,
  ])
})

test('a limit may be a numpy number', { skip: withoutPandas }, async () => {
  const program = `
import numpy, sys, bookcast
client = bookcast.Client(sys.argv[1])
answer = client.observations(station="NYC", start="2026-07-01", end="2026-07-02", limit=numpy.int64(7))
print(len(answer.to_df()), len(answer.to_list()))`
  const run = await promisify(execFile)(PANDAS_PYTHON ?? '', ['-c', program, file.service.url], {
    env: PYTHON_ENVIRONMENT,
  })
  assert.equal(run.stdout, '7 7\n')
})

test('a frame without rows has the columns of one with rows', { skip: withoutPandas }, async () => {
  const lob = { series: 'KXHIGHNY', date: '2026-07-01', interval: 3600 }
  const coverage = { series: 'KXHIGHNY', limit: 1 }
  for (const [method, some, none] of [
    ['lob', lob, { ...lob, after: '1783000000000000000' }],
    ['coverage', coverage, { ...coverage, offset: 100_000 }],
    ['coverage', { ...coverage, by: 'hour' }, { ...coverage, by: 'hour', offset: 100_000 }],
  ] as const) {
    const [full, empty] = [await frameOf(method, some), await frameOf(method, none)]
    assert.deepEqual(empty.dtypes, full.dtypes)
    assert.equal(empty.values['market_id']?.length, 0)
  }
})

test('columns are in the requested order', { skip: withoutPandas }, async () => {
  const parameters = {
    market: 'KXHIGHNY-26JUL01-B81.5',
    date: '2026-07-01',
    columns: ['mid', 'ts'],
    interval: 3600,
  }
  const frame = await frameOf('lob', parameters)
  assert.deepEqual(frame.dtypes, { mid: 'float64', ts: INSTANT })
})

interface ParquetAnswer {
  readonly method: string
  readonly parameters: Readonly<Record<string, unknown>>
  /** The same rows as JSON. */
  readonly target: string
  readonly types: Readonly<Record<string, string>>
}

const TIMESTAMP = 'TIMESTAMP WITH TIME ZONE'
const DUCKDB_TYPES: Readonly<Record<RecordFieldType, string>> = {
  string: 'VARCHAR',
  date: 'DATE',
  number: 'DOUBLE',
  integer: 'INTEGER',
  boolean: 'BOOLEAN',
  instant: TIMESTAMP,
}

function typesOf(kind: RecordKind): Record<string, string> {
  const fields: readonly RecordField[] = RECORD_FIELDS[kind]
  return Object.fromEntries(
    fields.map(({ name, type, isWide }) => [name, isWide === true ? 'BIGINT' : DUCKDB_TYPES[type]]),
  )
}

const LEVELS = 'STRUCT(price INTEGER, qty BIGINT)[]'
const PARQUET: readonly ParquetAnswer[] = [
  {
    method: 'lob',
    parameters: { series: 'KXHIGHNY', date: '2026-07-02', interval: 600, levels: 3 },
    target: 'lob?series=KXHIGHNY&date=2026-07-02&interval=600&levels=3',
    types: {
      ts: 'BIGINT',
      market_id: 'VARCHAR',
      best_bid: 'INTEGER',
      best_ask: 'INTEGER',
      spread: 'INTEGER',
      mid: 'DOUBLE',
      bids: LEVELS,
      asks: LEVELS,
    },
  },
  {
    method: 'candles',
    parameters: { series: 'KXHIGHNY', start: '2026-07-01', end: '2026-07-02', interval: 60, fill: false },
    target: 'candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-02&interval=60&fill=false',
    types: typesOf('candles'),
  },
  {
    method: 'observations',
    parameters: { station: 'NYC', start: '2026-07-01', end: '2026-07-02' },
    target: 'observations?station=NYC&from=2026-07-01&to=2026-07-02',
    types: typesOf('observations'),
  },
  {
    method: 'climate',
    parameters: { start: '2026-06-20', end: '2026-07-03' },
    target: 'climate?from=2026-06-20&to=2026-07-03',
    types: typesOf('climate'),
  },
]

/** A value of the JSON response as the reader returns it: instants in one format, dates according to `dates`. */
function asRead(value: unknown, type: string | undefined, dates: 'midnight' | 'day'): unknown {
  if (type === TIMESTAMP && typeof value === 'number') return new Date(value / 1e6).toISOString()
  if (typeof value !== 'string') return value
  if (type?.startsWith('TIMESTAMP') === true) return new Date(value).toISOString()
  return type === 'DATE' && dates === 'midnight' ? `${value}T00:00:00.000Z` : value
}

function rowsAsRead(rows: readonly JsonRecord[], { types }: ParquetAnswer, dates: 'midnight' | 'day') {
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, asRead(value, types[name], dates)])),
  )
}

/** Converts 64-bit integers, which the reader returns as text, to numbers. */
function withNumbers(row: Readonly<Record<string, unknown>>, types: ParquetAnswer['types']): object {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      if (types[name] === 'BIGINT') return [name, value === null ? null : Number(value)]
      if (types[name] !== LEVELS) return [name, value]
      const levels = value as readonly { price: number; qty: string }[]
      return [name, levels.map(({ price, qty }) => ({ price, qty: Number(qty) }))]
    }),
  )
}

test(
  'parquet files of the client, read by DuckDB, have the rows of the JSON response, with types and nulls',
  { skip: withoutPython },
  async (t) => {
    const client = new PythonClient(PYTHON ?? '')
    t.after(() => client.close())
    const directory = await temporaryDirectory(t)
    const { url, rows } = file.service
    let nulls = 0
    for (const answer of PARQUET) {
      const { method, parameters, target, types } = answer
      const path = join(directory, `${method}.parquet`)
      await client.raw({ url, method, parameters, action: 'file', path })
      const content = await readFile(path)
      const described = (
        await queryWithDuckDb(content, 'SELECT column_name, column_type FROM (DESCRIBE file)')
      ).map((text) => Object.values(JSON.parse(text) as Readonly<Record<string, string>>))
      assert.deepEqual(Object.fromEntries(described), types, method)
      const found = (await queryWithDuckDb(content, 'SELECT * FROM file')).map((text) =>
        withNumbers(JSON.parse(text) as Readonly<Record<string, unknown>>, types),
      )
      const json = await rows(`/api/v1/${target}`)
      assert.ok(json.length > 10, method)
      assert.deepEqual(found, rowsAsRead(json, answer, 'midnight'), method)
      nulls += json.flatMap((row) => Object.values(row)).filter((value) => value === null).length
    }
    assert.ok(nulls > 0, 'the sample has values that are not known')
  },
)

/** The libraries' values: timestamps for order books, and missing values except in raw columns. */
const TABLES = PARQUET.flatMap((answer): (ParquetAnswer & { readonly raw: boolean })[] => {
  if (answer.method !== 'lob') return [{ ...answer, raw: false }]
  const types = { ...answer.types, ts: TIMESTAMP }
  return [
    { ...answer, types, target: `${answer.target}&nulls=true`, raw: false },
    { ...answer, types, raw: true },
  ]
})

for (const [library, method] of [
  ['pyarrow', 'to_arrow'],
  ['polars', 'to_polars'],
] as const) {
  const python = pythonWith(library)
  const skip =
    python === null ? `no Python with ${library} is installed (BOOKCAST_TEST_PYTHON names one)` : false
  test(`${method} has the rows of the JSON response, with types and nulls`, { skip }, async (t) => {
    const client = new PythonClient(python ?? '')
    t.after(() => client.close())
    const { url, rows } = file.service
    for (const answer of TABLES) {
      const { method: asked, parameters, target, types, raw } = answer
      const given = (await client.raw({
        url,
        method: asked,
        parameters,
        action: 'table',
        library: method,
        raw,
      })) as { readonly types: Readonly<Record<string, string>>; readonly rows: readonly JsonRecord[] }
      assert.deepEqual(Object.keys(given.types), Object.keys(types))
      for (const [name, type] of Object.entries(given.types)) {
        assert.equal(
          /timestamp|datetime/i.test(type),
          types[name]?.startsWith('TIMESTAMP'),
          `${name} ${type}`,
        )
        assert.equal(
          /^u?int/i.test(type),
          /INTEGER$|BIGINT/.test(types[name]?.replace(LEVELS, '') ?? ''),
          `${name} ${type}`,
        )
      }
      const json = rowsAsRead(await rows(`/api/v1/${target}`), answer, 'day')
      const found = given.rows.map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [name, asRead(value, types[name], 'day')]),
        ),
      )
      assert.deepEqual(found, json, asked)
    }
  })
}

test(
  'to_polars and to_arrow pass complete parquet files to their libraries',
  { skip: withoutPython },
  async (t) => {
    // Fakes that record their arguments, because the libraries are not installed everywhere.
    const directory = await temporaryDirectory(t)
    await mkdir(join(directory, 'pyarrow'))
    const reading =
      'def read(file):\n    data = file.read()\n    return [data[:4].decode(), data[-4:].decode(), len(data)]\n'
    await writeFile(join(directory, 'polars.py'), `${reading}read_parquet = read\nconcat = list\n`)
    await writeFile(
      join(directory, 'pyarrow', '__init__.py'),
      'from io import BytesIO as BufferReader\nconcat_tables = list\n',
    )
    await writeFile(
      join(directory, 'pyarrow', 'parquet.py'),
      `${reading}class ParquetFile:\n    def __init__(self, page): self.read = lambda use_threads: read(page)\n`,
    )
    const client = new PythonClient(PYTHON ?? '', [directory])
    t.after(() => client.close())
    const { url, bytes } = file.service
    const parameters = {
      series: 'KXHIGHNY',
      start: '2026-07-01',
      end: '2026-07-01',
      interval: 60,
      fill: false,
    }
    const whole = await bytes(
      '/api/v1/candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-01&interval=60&format=parquet&limit=500000',
    )
    for (const library of ['to_polars', 'to_arrow']) {
      const given = await client.raw({ url, method: 'candles', parameters, action: 'library', library })
      assert.deepEqual(given, { value: [['PAR1', 'PAR1', whole.length]], progress: [] }, library)
      const filled = (await client.raw({
        url,
        method: 'candles',
        parameters: { ...parameters, fill: undefined },
        action: 'library',
        library,
      })) as { error: { message: string } }
      assert.match(filled.error.message, /pass fill=False/)
    }
  },
)
