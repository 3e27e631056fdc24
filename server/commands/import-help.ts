// The text of `bookcast import --help`: the whole of what a user needs to know of the input.

import { lobSourceNames, lobSources } from '../../shared/lob-sources.ts'
import { exchanges } from '../exchanges/registry.ts'
import { wrapText } from './terminal.ts'

const LINE_WIDTH = 119
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
  `A book is known from its snapshot on, as long as nothing can be missing. A break in ${NUMBERED.join(' and ')} sequence ` +
    'numbers, the end of a recording while another goes on, a silence of more than a day, or a line that a recorder ' +
    `writes when it loses its connection, ${TITLED[0]!.disconnectLine} (${OTHER_DISCONNECTS.join('; ')}), makes books ` +
    'unknown until their next snapshot. The gap begins after the last known message.',
  LINE_WIDTH,
)

export const IMPORT_HELP = `Usage: bookcast import --source ${CHOICE} --lake <dir> [options] [file…]

Turns recorded exchange WebSocket messages into order-book files (lob.v1) in the lake: one file per series and UTC
date. Input is ndjson, plain, gzip or zstd (told by the first bytes), one or many files; no file, or -, reads stdin.
All files of a run are published at its end or none is.

Options (each also as an environment variable)
${option(`--source ${CHOICE}`, 'BOOKCAST_IMPORT_SOURCE', 'whose messages they are')}
  --lake <dir>                the lake's directory, created if missing         BOOKCAST_LAKE
${option('--series <name>', 'BOOKCAST_IMPORT_SERIES', `files every market under this series; by default ${SERIES.join(', ')}`)}
  --skip-bad                  counts and reports lines that cannot be read     BOOKCAST_SKIP_BAD
                              instead of stopping; books that may have
                              missed something become unknown (a gap)
  --replace                   writes the dates that the recording has events   BOOKCAST_REPLACE
                              of from it alone, instead of adding to them
  --sequence strict|per-market|ignore                                          BOOKCAST_SEQUENCE
                              how far ${NUMBERED.join(' and ')} sequence numbers are believed.
                              strict (default): one that is missing makes
                              the books of its subscription unknown.
                              per-market: the recording holds a part of a
                              connection (one file a market, a filtered
                              dump); missing numbers are other markets', and
                              what was really lost goes unnoticed. A file
                              does not go on with another then.
                              ignore: numbers mean nothing; lost messages
                              and reconnects that no line tells of go
                              unnoticed
  --report <file>             writes the whole report as JSON, market by       BOOKCAST_IMPORT_REPORT
                              market
${option('--use-yes-price', 'BOOKCAST_USE_YES_PRICE', `the ${WITH_NO_LEG.join(' or ')} recording was made with use_yes_price; a recorded subscribe command that says so is noticed without this`)}
  --help                      this text

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
A receive time is RFC 3339 with its zone, or a number whose size tells its unit: below 10^11 seconds, below 10^14
milliseconds, below 10^17 microseconds, else nanoseconds. A key that may be a time but cannot be read as one is refused
by its name. An event's time is the exchange's, else the receive time, else that of the message before (of the next
message for a book that was not known before it). A time that no right clock can have shown is set aside and counted:
one that those around it contradict, or all receive times of a clock that differs from the exchange's by as much again
and again, as local time written as UTC does; they are corrected by that. Where messages are numbered, a snapshot has no
time but its receipt: if other messages of its connection happened after their own receipt, the recorder's clock was
behind, and it is put later by as much. A clock that is ahead by two minutes or less cannot be told from a slow
network: a first book is then known as much later, or from its first change on. PING, PONG and empty lines are passed
over.

Files may come in any order and overlap, in one run or in many: messages are put together by what is in them
(subscription and number, connection, receive time), and added to what the lake has. A message that is there already is
a repeat and adds nothing; several recorders of one market fill each other's gaps; two different messages under one
number are refused with both sources. The lake's files are those that one import of everything would have written.
Within a file lines stand in the order in which they came, recordings one after the other; a file that goes back again
and again (reversed, shuffled, written by two recorders at once) is refused by its name.

${GAPS}

At the end a report says what is known of each market and date, and why the rest is not; it warns of those of which
less than half of the covered time is known. Equal input makes equal bytes.

Exit codes: 0 done, 1 failed or interrupted (nothing was written, unless it says so), 2 wrong usage.

Example
  bookcast import --source ${lobSources()[0]} --lake ./lake recordings/*.ndjson.gz
`
