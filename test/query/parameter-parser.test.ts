import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { ParameterParser, ANSWER_ERRORS_MAX } from '../../server/query/parameter-parser.ts'
import type { Parameter } from '../../server/query/parameters.ts'
import { ApiError } from '../../shared/errors.ts'

const PARAMETERS = [
  { name: 'ticker', in: 'path', description: 'a', schema: { type: 'string' } },
  { name: 'station', description: 'b', schema: { type: 'string' }, required: true },
  { name: 'limit', description: 'c', schema: { type: 'integer', minimum: 1, maximum: 500, default: 10 } },
  { name: 'hour', description: 'd', schema: { type: 'integer', minimum: 0, maximum: 23 } },
  { name: 'date', description: 'e', schema: { type: 'string', format: 'date' } },
  { name: 'format', description: 'f', schema: { type: 'string', enum: ['json', 'csv'], default: 'json' } },
  {
    name: 'columns',
    description: 'g',
    schema: { type: 'array', items: { type: 'string', enum: ['ts', 'mid'] }, uniqueItems: true, minItems: 1 },
  },
] as const satisfies readonly Parameter[]

const parser = new ParameterParser(PARAMETERS)
const parse = (query: string) => parser.parse(query, { ticker: 'T' })

function refusalOf(query: string, withParser: { parse: typeof parser.parse } = parser): ApiError {
  try {
    withParser.parse(query, { ticker: 'T' })
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error))
    return error
  }
  throw new assert.AssertionError({ message: `${query} is accepted` })
}

test('returns typed values, defaults, and undefined for omitted parameters', () => {
  assert.deepEqual({ ...parse('station=NYC') }, { ticker: 'T', station: 'NYC', limit: 10, format: 'json' })
  const values = parse('station=NYC&limit=500&hour=08&date=2026-02-28&format=csv&columns=mid,ts')
  assert.deepEqual(
    { ...values },
    {
      ticker: 'T',
      station: 'NYC',
      limit: 500,
      hour: 8,
      date: '2026-02-28',
      format: 'csv',
      columns: ['mid', 'ts'],
    },
  )
})

test('reads plus as a space and undoes percent-encoding', () => {
  assert.equal(parse('station=New+York%2C%20N%C3%BC').station, 'New York, Nü')
  assert.equal(parse('&&%73tation=%2B&').station, '+')
})

for (const [query, parameter, fragment] of [
  ['station=NYC&limit=0', 'limit', 'a whole number from 1 to 500, not "0"'],
  ['station=NYC&limit=501', 'limit', 'a whole number from 1 to 500, not "501"'],
  [`station=NYC&limit=${'9'.repeat(400)}`, 'limit', 'a whole number from 1 to 500'],
  ['station=NYC&limit=1e2', 'limit', 'not "1e2"'],
  ['station=NYC&limit=-1', 'limit', 'not "-1"'],
  ['station=NYC&limit=%2B1', 'limit', 'not "+1"'],
  ['station=NYC&limit=+1', 'limit', 'not " 1"'],
  ['station=NYC&limit=1.0', 'limit', 'not "1.0"'],
  ['station=NYC&limit=0x10', 'limit', 'not "0x10"'],
  ['station=NYC&limit=١', 'limit', 'not "١"'],
  ['station=NYC&limit=', 'limit', 'it is empty'],
  ['station=NYC&limit', 'limit', 'it is empty'],
  ['station=NYC&limit=5&limit=5', 'limit', 'given once'],
  ['station=NYC&Limit=5', 'Limit', 'is not a parameter of this path'],
  ['station=NYC&__proto__=5', '__proto__', 'is not a parameter'],
  ['station=NYC&constructor=5', 'constructor', 'is not a parameter'],
  ['station=NYC&ticker=X', 'ticker', 'is not a parameter'],
  ['station=NYC&limit=%zz', 'limit', 'not valid percent-encoded'],
  ['station=NYC&limit=%ff', 'limit', 'not valid percent-encoded'],
  ['station=NYC&=5', '', 'is not a parameter'],
  ['station=NYC&date=2026-02-29', 'date', 'a calendar date, YYYY-MM-DD, not "2026-02-29"'],
  ['station=NYC&date=2026-2-1', 'date', 'a calendar date'],
  ['station=NYC&date=2026-02-01T00:00:00Z', 'date', 'a calendar date'],
  ['station=NYC&columns=ts,ts', 'columns', 'a comma-separated list, without repeats, of ts, mid'],
  ['station=NYC&columns=ts,', 'columns', 'of ts, mid'],
  ['station=NYC&columns=ts, mid', 'columns', 'of ts, mid'],
  ['', 'station', 'station is missing; it must be a text that is not empty'],
  ['station=', 'station', 'a text that is not empty; it is empty'],
] as const) {
  test(`refuses "${query.slice(0, 60)}" and names ${parameter}`, () => {
    const error = refusalOf(query)
    assert.equal(error.code, 'invalid_parameter')
    assert.deepEqual(
      error.errors.map((entry) => entry.parameter),
      [parameter],
    )
    assert.ok(error.errors[0]?.detail.includes(fragment), error.errors[0]?.detail)
    assert.equal(error.message, error.errors[0]?.detail)
  })
}

test('answers 406 if only the format is unknown, and 400 if more is wrong', () => {
  assert.equal(refusalOf('station=NYC&format=xml').code, 'unknown_format')
  assert.equal(refusalOf('station=NYC&format=').code, 'invalid_parameter')
  assert.equal(refusalOf('station=NYC&format=xml&format=xml').code, 'invalid_parameter')
  assert.equal(refusalOf('format=xml').code, 'invalid_parameter')
})

test('reports all wrong parameters at once, up to a bound', () => {
  const error = refusalOf('limit=x&hour=24&nope=1&format=xml&columns=')
  assert.deepEqual(error.errors.map((entry) => entry.parameter).toSorted(), [
    'columns',
    'format',
    'hour',
    'limit',
    'nope',
    'station',
  ])
  assert.match(error.message, /^6 parameters are wrong\./)
  const flood = refusalOf(Array.from({ length: 500 }, (_, index) => `x${index}=1`).join('&'))
  assert.equal(flood.errors.length, ANSWER_ERRORS_MAX)
  assert.ok(JSON.stringify(refusalOf(`${'n'.repeat(5000)}=1`).errors).length < 1000)
})

test('runs rules over several parameters also when single values are wrong', () => {
  const ruled = new ParameterParser(PARAMETERS, ({ has, values }, report) => {
    if (has('hour') && values.hour === undefined && values.limit === 10) report('date', 'seen by the rule')
    report('hour', 'this second message of one parameter is not kept')
  })
  const { errors } = refusalOf('station=NYC&hour=99', ruled)
  assert.deepEqual(
    errors.map((entry) => entry.parameter),
    ['hour', 'date'],
  )
  assert.match(errors[0]?.detail ?? '', /from 0 to 23/)
})

test('any query gives values or an error that names parameters', () => {
  const name = fc.oneof(fc.constantFrom(...PARAMETERS.map((parameter) => parameter.name)), fc.string())
  const value = fc.oneof(
    fc.constantFrom('1', '', 'json', '2026-07-01', 'ts'),
    fc.string(),
    fc.nat().map(String),
  )
  const entry = fc.tuple(name, fc.constantFrom('=', ''), value).map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 8 }), (entries) => {
      try {
        const values = parse(entries.join('&'))
        assert.ok(Number.isInteger(values.limit) && values.limit >= 1 && values.limit <= 500)
      } catch (error) {
        assert.ok(error instanceof ApiError)
        assert.ok(error.errors.length > 0)
      }
    }),
  )
})
