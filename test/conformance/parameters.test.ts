// interface.md section 4, row by row: every parameter of every endpoint, with its default shown by equal responses, its effect
// on real responses, and wrong values refused by its name. The clock stands at noon of a sample day, so that defaults that
// depend on it can be written out.

import assert from 'node:assert/strict'
import { after, before, mock, test } from 'node:test'
import { prepareLongLists, serviceOfThisFile } from '../support/conformance-service.ts'
import { readProblem } from '../support/test-server.ts'
import { LOB_PARAMETERS, MARKET_PARAMETERS, SERIES_PARAMETERS } from './catalogue-parameter-rows.ts'
import { cellsOf } from './contract-table.ts'
import { Ask, type EndpointParameters, NOW } from './parameter-rows.ts'
import {
  CANDLE_PARAMETERS,
  CLIMATE_PARAMETERS,
  GAP_PARAMETERS,
  OBSERVATION_PARAMETERS,
} from './record-parameter-rows.ts'

const file = serviceOfThisFile({ prepare: prepareLongLists })
before(() => mock.timers.enable({ apis: ['Date'], now: Date.parse(NOW) }))
after(() => mock.timers.reset())

const ENDPOINTS: readonly EndpointParameters[] = [
  CANDLE_PARAMETERS,
  OBSERVATION_PARAMETERS,
  CLIMATE_PARAMETERS,
  LOB_PARAMETERS,
  GAP_PARAMETERS,
  SERIES_PARAMETERS,
  MARKET_PARAMETERS,
]

for (const { section, path, kind, base, rows } of ENDPOINTS) {
  test(section, async (t) => {
    const ask = new Ask(file.service, path, kind)
    for (const row of rows) {
      const [name = ''] = cellsOf(row.contract)
      await t.test(row.contract, async () => {
        if (row.default !== undefined) {
          const { base: without, written } = row.default
          const text = await ask.text(without)
          assert.ok(text.length > 2, 'there is something to compare')
          assert.equal(
            await ask.text(without === '' ? written : `${without}&${written}`),
            text,
            'the default',
          )
        }
        await row.effect(ask)
        for (const value of ['', ...row.refused]) {
          const response = await ask.response(`${base}${name}=${value}`)
          assert.equal(response.status, 400, `${name}=${value}`)
          const { errors } = await readProblem(response)
          assert.ok(
            errors.some(({ parameter }) => parameter === name),
            `${name}=${value} is refused by name`,
          )
        }
      })
    }
  })
}
