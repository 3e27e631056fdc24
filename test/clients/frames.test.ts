// Frames of the Python client against the rows of the JSON answer: values, nulls and types. The libraries are other
// people's: where one is missing, the test says so.

import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { PANDAS_PYTHON, PYTHON, PythonClient, withoutPython } from '../support/client-drivers.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'
import { queryWithDuckDb } from '../support/parquet-readers.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const file = serviceOfThisFile()
const withoutPandas =
  PANDAS_PYTHON === null ? 'no Python with pandas is installed (Debian: python3-pandas)' : false

interface Frame {
  readonly dtypes: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, readonly unknown[]>>
  readonly error?: { readonly message: string }
}

async function frameOf(t: TestContext, method: string, parameters: object): Promise<Frame> {
  const client = new PythonClient(PANDAS_PYTHON ?? '')
  t.after(() => client.close())
  const frame = (await client.raw({ url: file.service.url, method, parameters, action: 'frame' })) as Frame
  assert.equal(frame.error, undefined)
  return frame
}

const INSTANT = 'datetime64[ns, UTC]'

/** What a value of the JSON answer is in a column of a type. */
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
    'lob?series=KXHIGHNY&date=2026-07-01&interval=600&levels=2',
    { ts: INSTANT, market_id: 'object', best_bid: 'int64', mid: 'float64', bids: 'object' },
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
  // Types hold where there is no row, too.
  [
    'observations',
    { station: 'NYC', start: '2020-01-01', end: '2020-01-01' },
    'observations?station=NYC&from=2020-01-01&to=2020-01-01',
    { observed_at: INSTANT, temp_f: 'float64', wind_dir_degrees: 'Int64' },
  ],
]

test('to_df gives the rows of the JSON answer, with types and nulls', { skip: withoutPandas }, async (t) => {
  let nulls = 0
  for (const [method, parameters, target, dtypes] of FRAMES) {
    const rows = await file.service.rows(`/api/v1/${target}`)
    const frame = await frameOf(t, method, parameters)
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

test('columns are in the order asked', { skip: withoutPandas }, async (t) => {
  const parameters = {
    market: 'KXHIGHNY-26JUL01-B81.5',
    date: '2026-07-01',
    columns: ['mid', 'ts'],
    interval: 3600,
  }
  const frame = await frameOf(t, 'lob', parameters)
  assert.deepEqual(frame.dtypes, { mid: 'float64', ts: INSTANT })
})

test(
  'a parquet file of the client, read by DuckDB, has the rows of the JSON answer',
  { skip: withoutPython },
  async (t) => {
    const client = new PythonClient(PYTHON ?? '')
    t.after(() => client.close())
    const path = join(await temporaryDirectory(t), 'observations.parquet')
    const { url, rows } = file.service
    const parameters = { station: 'NYC', start: '2026-07-01', end: '2026-07-02' }
    await client.raw({ url, method: 'observations', parameters, action: 'file', path })
    const wanted = await rows('/api/v1/observations?station=NYC&from=2026-07-01&to=2026-07-02')
    const found = await queryWithDuckDb(
      await readFile(path),
      'SELECT station_code, epoch_ms(observed_at)::DOUBLE AS at, temp_f, wind_dir_degrees, peak_wind_time IS NULL AS calm FROM file',
    )
    assert.deepEqual(
      found.map((text) => Object.values(JSON.parse(text) as Readonly<Record<string, unknown>>)),
      wanted.map((row) => [
        row['station_code'],
        Date.parse(String(row['observed_at'])),
        row['temp_f'],
        row['wind_dir_degrees'],
        row['peak_wind_time'] === null,
      ]),
    )
  },
)

test(
  'to_polars and to_arrow hand whole parquet files to their libraries',
  { skip: withoutPython },
  async (t) => {
    // Neither library is installed here: stand-ins note what they are given.
    const directory = await temporaryDirectory(t)
    await mkdir(join(directory, 'pyarrow'))
    const reading =
      'def read(file):\n    data = file.read()\n    return [data[:4].decode(), data[-4:].decode(), len(data)]\n'
    await writeFile(join(directory, 'polars.py'), `${reading}read_parquet = read\nconcat = list\n`)
    await writeFile(join(directory, 'pyarrow', '__init__.py'), 'concat_tables = list\n')
    await writeFile(join(directory, 'pyarrow', 'parquet.py'), `${reading}read_table = read\n`)
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
