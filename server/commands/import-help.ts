// The text of `bookcast import --help`: the whole of what a user needs to know of the input.

import { lobSourceNames, lobSources } from '../../shared/lob-sources.ts'
import { exchanges } from '../exchanges/registry.ts'
import { wrapText } from './terminal.ts'

const LINE_WIDTH = 115
/** Where descriptions begin, how wide their lines are, and where the variables stand behind them. */
const DESCRIPTION_COLUMN = 30
const DESCRIPTION_WIDTH = 47
const VARIABLE_COLUMN = 79

const TITLED = exchanges().map(({ source, exchange }) => ({ ...lobSourceNames(source), ...exchange }))
const CHOICE = lobSources().join('|')
const NUMBERED = TITLED.filter(({ isNumbered }) => isNumbered).map(({ title }) => `${title}'s`)
const WITH_NO_LEG = TITLED.filter(({ hasNoLeg }) => hasNoLeg).map(({ title }) => title)
const SERIES = TITLED.map(
  ({ title, seriesText }, place) => `${title}'s ${place === 0 ? 'series is ' : ''}${seriesText}`,
)
/** The first exchange's line, and those of others that write another. */
const DISCONNECTS = TITLED.filter(({ disconnectLine }) => disconnectLine !== TITLED[0]!.disconnectLine)
const OTHER_DISCONNECTS = DISCONNECTS.map(({ title, disconnectLine }) => `${title}: ${disconnectLine}`)

/** An option's lines. */
function option(head: string, variable: string, description: string): string {
  const [first = '', ...rest] = wrapText(description, DESCRIPTION_WIDTH).split('\n')
  const line = `  ${head}`.padEnd(DESCRIPTION_COLUMN) + first
  const indent = ' '.repeat(DESCRIPTION_COLUMN)
  return [line.padEnd(VARIABLE_COLUMN) + variable, ...rest.map((text) => indent + text)].join('\n')
}

const GAPS = wrapText(
  `A book is known from its snapshot until a message may be missing. These make books unknown until their next snapshot: ` +
    `a gap in ${NUMBERED.join(' and ')} sequence numbers, the end of a recording while another continues, a skipped line ` +
    `(unless sequence numbers show that nothing is missing), a level below zero, the end of a subscription, and a line ` +
    `that a recorder writes after a lost connection, ${TITLED[0]!.disconnectLine} ` +
    `(${OTHER_DISCONNECTS.join('; ')}). The gap begins after the last known message.`,
  LINE_WIDTH,
)

export const IMPORT_HELP = `Usage: bookcast import --source ${CHOICE} --lake <dir> [options] [file…]

Adds recorded exchange WebSocket messages to a lake. The import stores the messages as raw segments (raw/), and derives
the order-book files (lob/, one per series and UTC date) from all segments of the dates. Input is ndjson, plain, gzip or
zstd (detected from the first bytes), in one or many files; without a file, or with -, it reads stdin. The raw folder of
another lake is input too. A run publishes everything at the end, or nothing.

Options (each also as an environment variable)
${option(`--source ${CHOICE}`, 'BOOKCAST_IMPORT_SOURCE', 'the exchange that sent the messages')}
  --lake <dir>                the lake's directory, created if missing         BOOKCAST_LAKE
${option('--series <name>', 'BOOKCAST_IMPORT_SERIES', `files every market under this series; by default ${SERIES.join(', ')}`)}
  --skip-bad                  counts and reports lines that cannot be read     BOOKCAST_SKIP_BAD
                              instead of stopping; books that may have
                              missed something become unknown (a gap)
  --replace                   derives the dates that the recording covers      BOOKCAST_REPLACE
                              from it alone: their raw segments of before
                              are removed. The recording must have all
                              series of these dates
  --no-keep-raw               removes the raw segments of these dates after    BOOKCAST_NO_KEEP_RAW
                              the import, except of today, and of yesterday
                              beside a recorder. The dates are sealed: nothing
                              can be added to them, and they cannot be rebuilt
  --sequence strict|per-market|ignore                                          BOOKCAST_SEQUENCE
                              how far ${NUMBERED.join(' and ')} sequence numbers are trusted.
                              strict (default): a missing number makes the
                              books of its subscription unknown.
                              per-market: the recording holds part of a
                              connection (one file per market, a filtered
                              dump); missing numbers belong to other
                              markets, so real losses go unnoticed.
                              ignore: numbers mean nothing; lost messages
                              and unmarked reconnects go unnoticed
  --report <file>             writes the whole report as JSON, market by       BOOKCAST_IMPORT_REPORT
                              market
${option('--use-yes-price', 'BOOKCAST_USE_YES_PRICE', `the ${WITH_NO_LEG.join(' or ')} recording was made with use_yes_price; a recorded subscribe command that says so has the same effect`)}
  --help                      show this help

Lines: one message each, in any of these shapes
  {"type":"orderbook_delta",…}                         the frame alone
  [{"event_type":"book",…},{…}]                        several frames
  {"recv_ts":1782316195033836123,"msg":{…frame…}}      frame and receive time in a wrapper: the frame (or a list, or
                                                       either as a JSON string) as frame, data, message, raw, payload,
                                                       body, content, json, text or msg; the time under any key whose
                                                       name says a time (recv_ts, received_at, _received_at,
                                                       recv_time, ts_recv, local_timestamp, timestamp, ts, t, time …)
  {…frame…,"_received_at":"2026-06-24T15:49:55.033Z"}  receive time inside the frame (not as ts or timestamp, which
                                                       are the exchange's)
  1782316195.033 {…frame…}                             receive time, then space, tab or comma, then the frame
  [1782316195033,{…frame…}]                            the same as a list
A receive time is RFC 3339 with a zone, or a number: below 10^11 it counts seconds, below 10^14 milliseconds, below
10^17 microseconds, else nanoseconds. If a key may be a time but its value cannot be read as one, the import stops and
names the key.

An event's time is the exchange's, unless that alone is more than 5 s away from its neighbours. Where a message has no
exchange time, its receive time counts. If the receive times of a connection show that the recorder's clock was wrong,
the import corrects them by the smallest delay of the hour. Empty lines are skipped. A line longer than 64 MiB cannot be
read.

Files may come in any order and overlap, in one run or in several: the result is the same. Repeated messages add
nothing. Several recorders of one market fill each other's gaps. Within a file, lines are in order of receipt and
recordings follow one another; the import refuses a file that goes back repeatedly (reversed, shuffled, or written by
two recorders at once).

Only public messages are kept. The import counts private ones (fills, orders, subscriptions with keys) and leaves them
out. Trades, tickers and lifecycle messages stay in the raw segments.

${GAPS}

The final report states for each market and date what share of the time is known, and why the rest is not. It warns if
less than half is known. The same messages always produce the same bytes.

A date that is sealed, or that version 0.1 wrote without raw segments, cannot be added to. Import everything recorded of
it at once with --replace.

Exit codes: 0 done, 1 failed or interrupted (nothing was written, unless it says so) or no message of the exchange in
the input, 2 wrong usage.

Example
  bookcast import --source ${lobSources()[0]} --lake ./lake recordings/*.ndjson.gz
`
