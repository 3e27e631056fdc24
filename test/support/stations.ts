// Stations of the real samples that the service does not follow.

import { findStation, type Station } from '../../shared/stations.ts'
import assert from 'node:assert/strict'

/** A station of the table. */
export function knownStation(code: string): Station {
  const station = findStation(code)
  assert.ok(station !== undefined, code)
  return station
}

/** A station with the given ICAO identifier; everything else is New York's. */
export function sampleStation(icao: string, ghcnId = 'USW00000000'): Station {
  return { ...knownStation('NYC'), code: icao.slice(1), icao, ghcnId }
}
