// How dates and instants of each language appear in the URLs of both clients.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import {
  bookcast,
  PANDAS_PYTHON,
  PYTHON,
  PYTHON_ENVIRONMENT,
  withoutPython,
} from '../support/client-drivers.ts'

const run = promisify(execFile)
const client = new bookcast.Bookcast('http://host')

async function printed(python: string | null, program: string): Promise<string[]> {
  const text = `import datetime, bookcast\nclient = bookcast.Client("http://host")\n${program}`
  const { stdout } = await run(python ?? '', ['-c', text], { env: PYTHON_ENVIRONMENT })
  return stdout.trimEnd().split('\n')
}

const DAY = '/api/v1/lob?series=S&from=2026-07-01&to=2026-07-02'
const SPAN = '/api/v1/observations?station=NYC&from=2026-07-01T04:30:00'

test('TypeScript: a Date is an instant, or its UTC date where a date is expected', () => {
  const [from, to] = [new Date('2026-07-01T00:00:00Z'), new Date('2026-07-02T23:59:59Z')]
  assert.equal(client.lob({ series: 'S', from, to }).url(), `http://host${DAY}`)
  const instant = new Date('2026-07-01T00:30:00-04:00')
  assert.equal(client.observations({ station: 'NYC', from: instant }).url(), `http://host${SPAN}.000Z`)
  assert.throws(() => client.lob({ series: 'S', date: new Date('x') }), {
    name: 'BookcastError',
    message: 'A Date is no time: it is invalid.',
  })
})

test(
  'Python: dates and datetimes with a zone are accepted, naive ones refused',
  { skip: withoutPython },
  async () => {
    const found = await printed(
      PYTHON,
      `
print(client.lob(series="S", start=datetime.date(2026, 7, 1), end=datetime.date(2026, 7, 2)).url())
zone = datetime.timezone(datetime.timedelta(hours=-4))
print(client.observations(station="NYC", start=datetime.datetime(2026, 7, 1, 0, 30, tzinfo=zone)).url())
print(client.lob(series="S", date=datetime.datetime(2026, 6, 30, 22, tzinfo=zone)).url())
print(client.lob(series="S", start=datetime.datetime(2026, 6, 30, 22, tzinfo=zone), end="2026-07-02").url())
try:
    client.observations(station="NYC", start=datetime.datetime(2026, 7, 1))
except bookcast.BookcastError as error:
    print(error)`,
    )
    assert.deepEqual(found, [
      `http://host${DAY}`,
      `http://host${SPAN}Z`,
      'http://host/api/v1/lob?series=S&date=2026-07-01',
      `http://host${DAY}`,
      'The datetime 2026-07-01T00:00:00 has no time zone: give it one, such as datetime.timezone.utc.',
    ])
  },
)

const skip = PANDAS_PYTHON === null ? 'no Python with pandas is installed' : false
test('Python: a Timestamp of pandas is a datetime', { skip }, async () => {
  const found = await printed(
    PANDAS_PYTHON,
    `
import pandas
print(client.observations(station="NYC", start=pandas.Timestamp("2026-07-01 00:30", tz="America/New_York")).url())`,
  )
  assert.deepEqual(found, [`http://host${SPAN}Z`])
})
