// The figures of the contract (contract.md 4, 21, 24, 25 and 31), the bounds of memory, and those that several files must
// agree on. Any other bound of a queue, range, retry or wait stands beside its one user.

/** Order-book requests processed at once in one process; the next one is answered 429. */
export const LOB_CONCURRENT_REQUESTS_MAX = 4
/** Seconds a client refused by the slot limit is told to wait at least (`Retry-After`). */
export const LOB_RETRY_AFTER_S = 1
export const LOB_RANGE_DAYS_MAX = 31
export const LOB_INTERVAL_S_MIN = 1
export const LOB_INTERVAL_S_MAX = 3600
export const LOB_INTERVAL_S_DEFAULT = 60
export const LOB_LEVELS_MIN = 1
export const LOB_LEVELS_MAX = 50
export const LOB_LEVELS_DEFAULT = 10

/** Body bytes of the first chunk: small, for the time to the first byte. */
export const FIRST_CHUNK_BYTES = 16 * 1024
/** Each chunk may be so many times as long as the one before, up to CHUNK_BYTES. */
export const CHUNK_GROWTH = 8
/**
 * Body bytes of a chunk in a long answer. Each one costs a message either way and a call of the kernel; four times as
 * many of a quarter of the size take half as long again (bench/lob-end-to-end.ts).
 */
export const CHUNK_BYTES = 1024 * 1024
/** Chunks a worker may have in flight before the main thread returns a credit. */
export const CHUNK_WINDOW = 4
/** Chunk buffers a thread keeps from request to request. */
export const CHUNK_BUFFERS_KEPT_MAX = 8
/**
 * Chunks that the rows of one section are sure to fit into. A thread that is needed elsewhere may send all of them, so
 * that no client holds it; they are a third full with usual quantities. Hours of more rows are cut, which has both
 * threads decode the row groups at the cut.
 */
export const LOB_SECTION_CHUNKS_MAX = 80
/** Snapshot rows gathered into one row group of a parquet answer; the first one is small, for the first byte. */
export const PARQUET_OUT_ROW_GROUP_ROWS = 16_384

/** Rows of one lob.v1 row group at most (contract.md 34). */
export const LOB_ROW_GROUP_ROWS_MAX = 40_960
/** Events of one UTC hour and series that the fold sorts in memory at once; more are sorted in passes. */
export const FOLD_ROWS_MAX = 2_000_000
/** Recorded events held in memory, in bytes, before they spill to temporary files. */
export const SPILL_BUFFER_BYTES_MAX = 64 * 1024 * 1024
/** Bytes of a market id: the longest known have 145. */
export const MARKET_ID_BYTES_MAX = 256
/** Age from which a left-over temporary file of a killed process is removed. */
export const STALE_TEMP_AGE_MS = 24 * 60 * 60 * 1000
/** Bytes of one recorded message (one ndjson line). An exchange raised its frame limit to 64 MiB in 2026. */
export const IMPORT_LINE_BYTES_MAX = 64 * 1024 * 1024
/** Footer bytes a reader accepts: a larger one is taken for damage. */
export const FOOTER_BYTES_MAX = 64 * 1024 * 1024
/** Bytes of one row group (compressed or not) that the reader is willing to hold. */
export const ROW_GROUP_BYTES_MAX = 512 * 1024 * 1024
/** Bytes of an uncompressed page besides its values: block padding; and per value: its length, levels, run headers. */
export const PAGE_OVERHEAD_BYTES_MAX = 64 * 1024
export const VALUE_OVERHEAD_BYTES_MAX = 8

/** Request target (path and query) in bytes; a longer one is 414. */
export const REQUEST_TARGET_BYTES_MAX = 8 * 1024
/** Request line and header fields together, in bytes; uWebSockets itself answers a longer head with 431. */
export const REQUEST_HEAD_BYTES_MAX = 16 * 1024
/** A client that takes no byte for so long is cut off. `BOOKCAST_STALL_TIMEOUT_MS` sets another value. */
export const STALL_TIMEOUT_MS_DEFAULT = 30_000
/** Body bytes written at once to a client that may be slow; a fast one is given whole chunks … */
export const BODY_PIECE_BYTES_MIN = 64 * 1024
/** … when it has taken so many times as much without its socket being full, which holds some megabytes. */
export const BODY_PIECE_SHARE = 64
/** Body bytes a stream keeps back to have something to offer a stalled socket: one is spent per offer. */
export const BODY_RESERVE_BYTES = 1024
/** Body bytes that may still be unsent when a stream ends its answer and gives up its slot. */
export const BODY_LAST_BYTES_MAX = 64
/** So long after a climate date's end in UTC its final report is due: 18:00 UTC on the next day. */
export const CLIMATE_FINAL_DUE_MS = 18 * 60 * 60 * 1000

/** Body bytes of an upstream's answer, compressed or not, unless the upstream states another bound. */
export const UPSTREAM_BODY_BYTES_MAX_DEFAULT = 16 * 1024 * 1024
/** Longest wait of a request for its turn in the own budget of requests. */
export const UPSTREAM_BUDGET_WAIT_MS_MAX = 10 * 60 * 1000

/** Characters of one METAR or SPECI. The longest real ones have about 400. */
export const METAR_TEXT_CHARACTERS_MAX = 2000

/** Entries the aviation weather feed puts into one answer at most; it cuts silently. */
export const AWC_ENTRIES_MAX = 400
/** Reports one station sends per hour at most, routine and special: keeps a request below the feed's maximum. */
export const AWC_REPORTS_PER_STATION_HOUR_MAX = 6
/** How far back the feed goes. */
export const AWC_HOURS_MAX = 15 * 24
/** A station's year in GHCNh format has about 20 MB. */
export const NCEI_BODY_BYTES_MAX = 128 * 1024 * 1024

/** The longest stall or shutdown time-out that configuration accepts. */
export const CONFIGURED_TIMEOUT_MS_MAX = 3_600_000
/** Megabytes of JavaScript heap one order-book thread may use before it is ended. */
export const LOB_THREAD_HEAP_MB_MAX = 512
/** A thread that has not ended a cancelled task after so long is terminated. */
export const WORKER_CANCEL_TIMEOUT_MS = 10_000
/** Bodies below this size are sent as they are: they fit in one packet anyway. */
export const COMPRESSED_BODY_BYTES_MIN = 1_400
/** What configuration accepts for the rate of a client, API keys and proxies. */
export const RATE_LIMIT_PER_SECOND_MAX = 1_000_000
/** Pages of series and markets. */
export const LIST_LIMIT_DEFAULT = 1_000
export const LIST_LIMIT_MAX = 10_000
/** /health: how long a database may take to answer, and how long one round of questions counts. */
export const HEALTH_CHECK_TIMEOUT_MS = 1_000
/** A synchronization longer ago than this is stale (contract.md 24). */
export const HEALTH_STALE_MS = 2 * 60 * 60 * 1000

/** The server cancels a statement that runs longer. */
export const STORE_STATEMENT_TIMEOUT_MS_DEFAULT = 15_000
export const STORE_CONNECT_TIMEOUT_MS_DEFAULT = 5_000
/** Time beyond the statement time-out after which a silent server counts as lost and its connections are dropped. */
export const STORE_DEADLINE_GRACE_MS = 2_000
/** Rows of one read: each is a statement of its own that holds no connection afterwards. */
export const STORE_READ_BATCH_ROWS = 1_000

/** Bytes of one protocol message from or to the embedded store. */
export const EMBEDDED_MESSAGE_BYTES_MAX = 64 * 1024 * 1024
/** Answer bytes a client of the embedded store may leave unread before it is cut off. */
export const EMBEDDED_UNREAD_BYTES_MAX = 256 * 1024 * 1024
/** Log lines are written when there are so many bytes of them, and at the latest after so long. */
export const LOG_BLOCK_BYTES = 16 * 1024
/** Longer lines go round the block. */
export const LOG_LINE_BYTES_MAX = 64 * 1024
/** Bytes of the log that wait while stderr cannot be written; lines beyond them are dropped. */
export const LOG_WAITING_BYTES_MAX = 16 * 1024 * 1024

/**
 * Steps of scheduling priority by which threads stand back: those that stream order books behind those that answer
 * smaller requests, and both behind the event loop, which has little to do but must do it at once. On two processors with
 * four streams and 150 requests/s: event-loop delay p99 32 ms without, 19.9 with; a request's median 296 and 19 ms.
 */
export const LOB_THREAD_NICENESS = 10
/** Threads that answer candles, observations and climate. */
export const RECORD_THREADS = 2
/** Rows that the record requests under way may ask for together; a request counts with its `limit`. */
export const RECORD_ROWS_IN_FLIGHT_MAX = 2_000_000
/**
 * Requests that one such thread serves at once: waiting for stores and slow clients interleaves, computing does not. So
 * many that a burst, or a second in which the processors are busy with order books, is waited out instead of refused.
 */
export const RECORD_TASKS_PER_THREAD = 100
/** What a request counts with at least, so that there are never more of them than the threads take. */
export const RECORD_ROWS_COUNTED_MIN = Math.ceil(
  RECORD_ROWS_IN_FLIGHT_MAX / (RECORD_THREADS * RECORD_TASKS_PER_THREAD),
)
export const RECORD_THREAD_HEAP_MB_MAX = 1_024
export const RECORD_OFFSET_MAX = 10_000_000
export const CANDLES_LIMIT_DEFAULT = 10_000
export const TRADES_LIMIT_DEFAULT = 1_000
export const OBSERVATIONS_LIMIT_DEFAULT = 1_000
export const CLIMATE_LIMIT_DEFAULT = 1_000
/** Minutes of the longest candle that `aggregate` makes. */
export const CANDLE_AGGREGATE_MIN_MAX = 1_440
/** A market that has not traded for so long is over for the forward fill. */
export const CANDLE_FILL_GAP_DAYS_MAX = 366
/** Years of one climate-gap analysis. */
export const CLIMATE_GAP_YEARS_MAX = 10
export const CLIMATE_GAP_YEARS_DEFAULT = 5
/** `from` of candles and observations lies so long before now by default. */
export const RECORD_RANGE_MS_DEFAULT = 24 * 60 * 60 * 1000
/**
 * Memory and threads of one worker's DuckDB; larger sorts spill to temporary files. With RECORD_THREADS this is the bound
 * on what record requests take outside of the JavaScript heap, but for CANDLE_CACHE_BYTES_MAX and chunks in flight.
 */
export const DUCKDB_MEMORY_MB_MAX = 512
export const DUCKDB_TEMP_MB_MAX = 4_096
/**
 * Lake files that one record request may look into. Threads remember what as many hold: with fewer, a request for all of
 * them would read each of them anew.
 */
export const RECORD_LAKE_FILES_MAX = 5_000
/** Bytes of candle rows that a thread remembers. */
export const CANDLE_CACHE_BYTES_MAX = 64 * 1024 * 1024
/** Rows of one read from the relational store in a record thread. */
export const RECORD_STORE_BATCH_ROWS = 5_000
/** Rows that are encoded before the thread turns to its other requests. */
export const RECORD_ENCODE_BATCH_ROWS = 4_096
/** Time zones a thread remembers, by the name they were asked for. */
export const ZONES_CACHED_MAX = 1_024
/** Times a record request is planned anew because a file or the manifest changed while it was read. */
export const RECORD_PLAN_ATTEMPTS_MAX = 3

/** An archive's window counts as complete so long after its end: reports reach the archives late. */
export const INGEST_ARCHIVE_SETTLE_MS = 2 * 24 * 60 * 60 * 1000

/** Objects transferred at once by one synchronization. */
export const SYNC_PARALLEL_DEFAULT = 4
export const SYNC_PARALLEL_MAX = 64
/** Times one object is tried in one synchronization. */
export const SYNC_ATTEMPTS_MAX = 5
/** A transfer in which no byte moves for so long is broken off and tried again. */
export const SYNC_STALL_MS = 30_000
/** The largest object one S3 PUT may carry. */
export const SYNC_OBJECT_BYTES_MAX = 5 * 1024 * 1024 * 1024
/** Contents remembered as written by the synchronization, for each object. */
export const SYNC_OWN_DIGESTS_MAX = 4
/**
 * Pause between two synchronizations of a running process. A change in the books is seconds later in the lake, so long
 * later at most in object storage, and as long again in a copy: about a minute in all.
 */
export const SYNC_INTERVAL_MS = 25 * 1000

/** Time after a day's end before its rows are moved to the lake: most late reports and corrections are in by then. */
export const COMPACTION_DELAY_MS = 36 * 60 * 60 * 1000
export const COMPACTION_DELAY_HOURS_MAX = 24 * 366
export const COMPACTION_GRACE_MINUTES_MAX = 7 * 24 * 60
/** Memory the database may use that writes a partition. */
export const COMPACTION_MEMORY = '512MB'

/** Payload bytes of one write-ahead record: the largest frame limit of an exchange. A larger frame ends the connection. */
export const WAL_PAYLOAD_BYTES_MAX = 64 * 1024 * 1024
/** A received frame waits at most so long for others that are synced with it; or until so many bytes wait. */
export const WAL_COMMIT_INTERVAL_MS = 100
export const WAL_COMMIT_BYTES = 1024 * 1024
/** A segment ends with its UTC hour or before it grows beyond this. */
export const WAL_SEGMENT_BYTES_MAX = 256 * 1024 * 1024
/** Bytes waiting for the disk from which sockets are no longer read, and below which they are again. */
export const WAL_QUEUE_BYTES_HIGH = 32 * 1024 * 1024
export const WAL_QUEUE_BYTES_LOW = 8 * 1024 * 1024
/** Bytes of a segment read at once by the fold. */
export const WAL_READ_BYTES = 1024 * 1024
/** The open date is brought into the lake so often, or less often when that takes more than a fifth of the time. */
export const RECORDER_PUBLISH_INTERVAL_MS = 3_000
/** Megabytes of JavaScript heap a fold thread may use. */
export const RECORDER_THREAD_HEAP_MB_MAX = 1024

/** A feed's handshake, and an answer to a command, may take so long. */
export const FEED_HANDSHAKE_TIMEOUT_MS = 10_000
