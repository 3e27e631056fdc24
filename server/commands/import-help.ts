// The text of `bookcast import --help`: the whole of what a user needs to know of the input.

export const IMPORT_HELP = `Usage: bookcast import --source kalshi|polymarket --lake <dir> [options] [file…]

Turns recorded exchange WebSocket messages into order-book files (lob.v1) in the lake: one file per series and UTC
date. Input is ndjson, plain or gzip, one or many files; no file, or -, reads stdin. All files of a run are published
at its end or none is.

Options (each also as an environment variable)
  --source kalshi|polymarket  whose messages they are                          BOOKCAST_IMPORT_SOURCE
  --lake <dir>                the lake's directory, created if missing         BOOKCAST_LAKE
  --series <name>             files every market under this series; by         BOOKCAST_IMPORT_SERIES
                              default Kalshi's series is the ticker up to its
                              first dash, Polymarket's the condition id
  --skip-bad                  counts and reports lines that cannot be read     BOOKCAST_SKIP_BAD
                              instead of stopping; books that may have
                              missed something become unknown (a gap)
  --replace                   writes dates anew that the lake already holds    BOOKCAST_REPLACE
                              with other data; nothing is merged
  --use-yes-price             the Kalshi recording was made with               BOOKCAST_USE_YES_PRICE
                              use_yes_price; a recorded subscribe command
                              that says so is noticed without this
  --help                      this text

Lines: one message each, in any of these shapes
  {"type":"orderbook_delta",…}                         the frame alone
  [{"event_type":"book",…},{…}]                        several frames
  {"recv_ts":1782316195033836123,"msg":{…frame…}}      frame and receive time in a wrapper: the frame (or a list, or
                                                       either as a JSON string) as frame, data, message, raw or msg,
                                                       the time as recv_ts, received_at, _received_at, recv_time,
                                                       ts_recv, local_timestamp or timestamp
  {…frame…,"_received_at":"2026-06-24T15:49:55.033Z"}  receive time inside the frame (not as timestamp)
  1782316195.033 {…frame…}                             receive time, then space, tab or comma, then the frame
  [1782316195033,{…frame…}]                            the same as a list
A receive time is RFC 3339 with its zone, or a number whose size tells its unit: below 10^11 seconds, below 10^14
milliseconds, below 10^17 microseconds, else nanoseconds. An event's time is the exchange's, else the receive time,
else that of the message before. PING, PONG and empty lines are passed over.

A break in Kalshi's sequence numbers, a silence of more than a day, or a line that a recorder writes when it loses its
connection, {"type":"disconnect","ts":…} (Polymarket: {"event_type":"disconnect","timestamp":…}), makes books unknown
until their next snapshot.

Files are read in the order of their first message's time, whatever the order of the arguments; stdin comes last. A
file whose sequence numbers go on where those of the file before ended continues its connection. Equal input makes
equal bytes.

Exit codes: 0 done, 1 failed or interrupted (nothing was written), 2 wrong usage.

Example
  bookcast import --source kalshi --lake ./lake recordings/*.ndjson.gz
`
