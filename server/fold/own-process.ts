// The processes of recorders, as the names of their connections state them, and the order of the lines of a process.

import { groupedBy } from '../../shared/grouped-by.ts'
import { later } from '../../shared/utc-date.ts'
import type { OwnLine, Piece } from './piece.ts'
import { mergeSorted } from './sorted-merge.ts'

/** `<recorder>/<ms in which the process began>/<lane>/<ms in which the connection began>` */
export function partsOf(connection: string): { readonly recorder: string; readonly start: number } {
  const [recorder = '', start = ''] = connection.split('/', 2)
  return { recorder, start: Number(start) || 0 }
}

/** The lines of recorders in an hour: process by process, those of a process in the order of receipt. */
export function* linesOfProcesses(pieces: readonly Piece[]): Generator<OwnLine> {
  const byProcess = groupedBy(pieces, ({ connection }) => connection && processOf(connection))
  byProcess.delete(undefined)
  for (const [, own] of [...byProcess].toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1))) {
    const placed = mergeSorted(own.map(placedLines), (a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)))
    for (const { line } of placed) yield line
  }
}

function processOf(connection: string): string {
  const { recorder, start } = partsOf(connection)
  return `${recorder}/${String(start).padStart(16, '0')}`
}

/** The lines of a connection. One about an earlier time, such as `alive`, does not go before the one that it follows. */
function* placedLines({
  connection,
  lines,
}: Piece): Generator<{ readonly at: bigint; readonly line: OwnLine }> {
  let at = 0n
  for (const line of lines) {
    const recvTs = line.recvTs ?? 0n
    at = later(recvTs, at)
    yield { at, line: { ...line, connection: connection!, n: line.n!, recvTs } }
  }
}
