// Asks the embedded analytical database a query in a process that has no record threads, and so no DuckDB that serves
// requests (record-pool.ts asks that one). It is loaded when it is first asked; a query that does not come back in time
// counts as a failure, and is not asked again before it has ended.

import type { DatabaseCheck } from './health-monitor.ts'
import { withinTime } from '../../shared/within-time.ts'

async function openDatabase(): Promise<() => Promise<boolean>> {
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  return async () => {
    const result = await connection.runAndReadAll('SELECT 41 + 1')
    return result.getRows()[0]?.[0] === 42
  }
}

export function embeddedDbCheck(): DatabaseCheck {
  let query: Promise<() => Promise<boolean>> | undefined
  let running: Promise<boolean> | undefined
  const ask = async (): Promise<boolean> => {
    try {
      query ??= openDatabase()
      return await (
        await query
      )()
    } catch {
      query = undefined
      return false
    } finally {
      running = undefined
    }
  }
  return async (timeoutMs) => {
    running ??= ask()
    return (await withinTime(running, timeoutMs)) ?? false
  }
}
