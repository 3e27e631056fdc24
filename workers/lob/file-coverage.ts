// When the books of a file are known, market by market: from the figures in its footer or, without them, from one scan of four
// columns. Cached until the file is replaced, within a bound on memory.

import { FileFacts } from '../../shared/file-facts.ts'
import { type MarketHours, MarketHoursCount, parseHours } from '../../shared/lob-hours.ts'
import { EVENT_GAP, LOB_FOOTER_KEYS as KEYS } from '../../shared/lob-v1.ts'
import { namingFile } from '../lake/lake-file-error.ts'
import { decodeInt32, decodeInt64, decodeLags, decodeStrings } from '../../shared/lob-file/decode-column.ts'
import { HOUR_NS, numbering, sortedById } from './file-index.ts'
import type { LakeFile } from './lake-file.ts'

/** The estimated size of the cache: about 15,000 dates of six markets. */
const BYTES_MAX = 64 * 1024 * 1024
const FILE_BYTES = 512
const MARKET_BYTES = 400
const BYTES_PER_NUMBER = 4

/** Instants are nanoseconds after the file's midnight. */
export interface FileCoverage {
  readonly from: number
  /** Exclusive. */
  readonly to: number
  /** Whether the footer states `from` and `to`; else they are the span of the rows. */
  readonly isStated: boolean
  readonly isCounted: boolean
  /** Whether every book that is known at midnight has a keyframe there. */
  readonly tellsMidnight: boolean
  /** In code unit order of the ids. */
  readonly markets: ReadonlyMap<string, MarketHours>
}

/** By name. */
export const rememberedCoverage = new FileFacts<FileCoverage>(BYTES_MAX)

/** The coverage without a scan; undefined if a scan would be needed. @throws {ApiError} that names a file which cannot be read */
export function statedCoverage(file: LakeFile): FileCoverage | undefined {
  const known = rememberedCoverage.of(file.name, file.identity)
  if (known !== undefined) return known
  const stated = coverageInFooter(file)
  if (stated !== undefined) remember(file, stated)
  return stated
}

/** @throws {ApiError} that names a file which cannot be read, or has changed since it was opened */
export function coverageOf(file: LakeFile): FileCoverage {
  const stated = statedCoverage(file)
  if (stated !== undefined) return stated
  const scanned = namingFile(file.place, () => scan(file))
  file.assertUnchanged()
  remember(file, scanned)
  return scanned
}

function coverageInFooter(file: LakeFile): FileCoverage | undefined {
  const texts = file.footerTexts([KEYS.date, KEYS.coversFrom, KEYS.coversTo, KEYS.hours, KEYS.markets])
  const { date, covers_from: from, covers_to: to, hours: stated, markets } = texts ?? {}
  if (date !== file.date || !from || !to || !stated || !markets) return undefined
  return namingFile(file.place, () => {
    const ids = (JSON.parse(markets) as readonly { readonly id: string }[]).map(({ id }) => id)
    const hours = parseHours(stated)
    if (ids.length !== hours.length) throw new Error('it has the hours of other markets')
    return {
      from: Number(BigInt(from) - file.baseNs),
      to: Number(BigInt(to) - file.baseNs) + 1,
      isStated: true,
      isCounted: false,
      tellsMidnight: true,
      markets: sortedById(ids.map((id, index) => [id, hours[index]!])),
    }
  })
}

/** One pass over ts, recv_ts, market_id and event of every row. */
function scan(file: LakeFile): FileCoverage {
  const { index } = file
  const { entries, numberOf } = numbering((id) => ({ id, hours: new MarketHoursCount() }))
  let first = Infinity
  for (const { rows, columns, tsMin } of index.rowGroups) {
    first = Math.min(first, tsMin)
    const { ts: tsChunk, recv_ts: recvChunk, market_id: marketChunk, event: eventChunk } = columns
    const ts = decodeInt64(file.readChunk(tsChunk), tsChunk, rows, file.baseNs)
    const lag = decodeLags(file.readChunk(recvChunk), recvChunk, ts, file.baseNs)
    const market = decodeStrings(file.readChunk(marketChunk), marketChunk, rows, numberOf)
    const event = decodeInt32(file.readChunk(eventChunk), eventChunk, rows, EVENT_GAP)
    for (let from = 0; from < rows;) {
      const hour = Math.floor(ts[from]! / HOUR_NS)
      let to = from + 1
      while (to < rows && market[to] === market[from] && Math.floor(ts[to]! / HOUR_NS) === hour) to++
      entries[market[from]!]!.hours.addRows({ ts, lag, event }, from, to)
      from = to
    }
  }
  const { statedCoverage: stated, coversTo, tellsMidnight } = index
  return {
    from: stated?.from ?? first,
    to: (stated?.to ?? coversTo) + 1,
    isStated: stated !== undefined,
    isCounted: true,
    tellsMidnight,
    markets: sortedById(entries.map(({ id, hours }) => [id, compact(hours.result())])),
  }
}

function compact(hours: MarketHours): MarketHours {
  return { ...hours, hours: Int32Array.from(hours.hours) }
}

function remember({ name, identity }: LakeFile, coverage: FileCoverage): void {
  let sizeBytes = FILE_BYTES
  for (const [id, { changes, hours }] of coverage.markets)
    sizeBytes +=
      MARKET_BYTES + id.length + 2 * BYTES_PER_NUMBER * changes.length + BYTES_PER_NUMBER * hours.length
  rememberedCoverage.add(name, identity, coverage, sizeBytes)
}
