// The text of `bookcast import --help`: the whole of what a user needs to know of the input.

export const IMPORT_HELP = `Usage: bookcast import --source kalshi|polymarket --lake <dir> [options] [file…]

Turns recorded exchange WebSocket messages into order-book files (lob.v1) in the lake: one file per series and UTC
date. Input is ndjson, plain, gzip or zstd (told by the first bytes), one or many files; no file, or -, reads stdin.
All files of a run are published at its end or none is.

Options (each also as an environment variable)
  --source kalshi|polymarket  whose messages they are                          BOOKCAST_IMPORT_SOURCE
  --lake <dir>                the lake's directory, created if missing         BOOKCAST_LAKE
  --series <name>             files every market under this series; by         BOOKCAST_IMPORT_SERIES
                              default Kalshi's series is the ticker up to its
                              first dash, Polymarket's the condition id
  --skip-bad                  counts and reports lines that cannot be read     BOOKCAST_SKIP_BAD
                              instead of stopping; books that may have
                              missed something become unknown (a gap)
  --replace                   writes the dates that the recording has events   BOOKCAST_REPLACE
                              of from it alone, instead of adding to them
  --sequence strict|per-market|ignore                                          BOOKCAST_SEQUENCE
                              how far Kalshi's sequence numbers are believed.
                              strict (default): one that is missing makes
                              the books of its subscription unknown.
                              per-market: the recording holds a part of a
                              connection (one file a market, a filtered
                              dump); missing numbers are other markets', and
                              what was really lost goes unnoticed.
                              ignore: numbers mean nothing
  --report <file>             writes the whole report as JSON, market by       BOOKCAST_IMPORT_REPORT
                              market
  --use-yes-price             the Kalshi recording was made with               BOOKCAST_USE_YES_PRICE
                              use_yes_price; a recorded subscribe command
                              that says so is noticed without this
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
by its name. An event's time is the exchange's, else the receive time, else that of the message before; a time that no
right clock can have shown is set aside and counted. PING, PONG and empty lines are passed over.

Files may come in any order and overlap, in one run or in many: messages are put together by what is in them
(subscription and number, connection, receive time), and added to what the lake has. A message that is there already is
a repeat and adds nothing; several recorders of one market fill each other's gaps; two different messages under one
number are refused with both sources. The lake's files are those that one import of everything would have written.

A book is known from its snapshot on, as long as nothing can be missing. A break in Kalshi's sequence numbers, the end
of a recording while another goes on, a silence of more than a day, or a line that a recorder writes when it loses its
connection, {"type":"disconnect","ts":…} (Polymarket: {"event_type":"disconnect","timestamp":…}), makes books unknown
until their next snapshot. The gap begins after the last known message.

At the end a report says what is known of each market and date, and why the rest is not; it warns of those of which
less than half of the covered time is known. Equal input makes equal bytes.

Exit codes: 0 done, 1 failed or interrupted (nothing was written, unless only the report failed), 2 wrong usage.

Example
  bookcast import --source kalshi --lake ./lake recordings/*.ndjson.gz
`
