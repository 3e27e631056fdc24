// The options of `bookcast import` and its --help, which explains everything that a user needs to know about the input.

import { lobSourceNames, lobSources } from '../../shared/lob-sources.ts'
import { exchanges } from '../exchanges/registry.ts'
import { SEQUENCE_TRUSTS } from '../feed/feed-reading.ts'
import { describeOptions, type OptionDeclaration } from '../options/options.ts'
import { wrapText } from './terminal.ts'

const LINE_WIDTH = 115

const TITLED = exchanges().map(({ source, exchange }) => ({ ...lobSourceNames(source), ...exchange }))
const CHOICE = lobSources().join('|')
const NUMBERED = TITLED.filter(({ isNumbered }) => isNumbered).map(({ title }) => `${title}'s`)
const WITH_NO_LEG = TITLED.filter(({ hasNoLeg }) => hasNoLeg).map(({ title }) => title)
const SERIES = TITLED.map(
  ({ title, seriesText }, place) => `${title}'s ${place === 0 ? 'series is ' : ''}${seriesText}`,
)
/** Exchanges whose disconnect line differs from that of the first exchange. */
const DISCONNECTS = TITLED.filter(({ disconnectLine }) => disconnectLine !== TITLED[0]!.disconnectLine)
const OTHER_DISCONNECTS = DISCONNECTS.map(({ title, disconnectLine }) => `${title}: ${disconnectLine}`)

export const IMPORT_OPTIONS: readonly OptionDeclaration[] = [
  {
    name: 'source',
    placeholder: CHOICE,
    description: 'the exchange that sent the messages; required',
    env: 'BOOKCAST_IMPORT_SOURCE',
  },
  { name: 'lake', placeholder: '<dir>', description: "the lake's directory, created if missing; required" },
  {
    name: 'series',
    placeholder: '<name>',
    description: 'the series under which every market is filed',
    env: 'BOOKCAST_IMPORT_SERIES',
  },
  { name: 'skip-bad', description: 'count and report lines that cannot be read instead of stopping' },
  { name: 'replace', description: 'derive the dates that the recording covers from this recording alone' },
  { name: 'no-keep-raw', description: 'remove the raw segments of these dates after the import' },
  {
    name: 'sequence',
    placeholder: SEQUENCE_TRUSTS.join('|'),
    description: `how far ${NUMBERED.join(' and ')} sequence numbers are trusted`,
    default: SEQUENCE_TRUSTS[0],
  },
  {
    name: 'report',
    placeholder: '<file>',
    description: 'write the whole report as JSON, market by market',
    env: 'BOOKCAST_IMPORT_REPORT',
  },
  {
    name: 'use-yes-price',
    description: `the ${WITH_NO_LEG.join(' or ')} recording was made with use_yes_price`,
  },
]

const SERIES_TEXT = wrapText(
  `Without --series, each market is filed under its own series: ${SERIES.join(', ')}. A recorded subscribe command that ` +
    'says use_yes_price has the same effect as --use-yes-price.',
  LINE_WIDTH,
)

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

${describeOptions(IMPORT_OPTIONS)}

${SERIES_TEXT}

With --skip-bad, books that may have missed something become unknown (a gap).

With --replace, earlier raw segments of these dates are removed. The recording must have all series of these dates.

With --no-keep-raw, the segments of today stay, and those of yesterday if a recorder has segments of it. The other dates
are sealed: nothing can be added to them, and they cannot be rebuilt.

--sequence
  strict       a missing number makes the books of its subscription unknown
  per-market   the recording holds part of a connection (one file per market, a filtered dump); missing numbers belong
               to other markets, so real losses go unnoticed
  ignore       numbers are not read; lost messages and unmarked reconnects go unnoticed

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
