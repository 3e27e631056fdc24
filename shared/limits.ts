// The limits of the contract (contract.md 4, 21, 24, 25 and 31), the bounds of memory, and limits that several files use. Any other
// bound of a queue, range, retry or wait is in the one file that uses it.

/** Order-book requests that one process serves at once; the next one gets 429. */
export const LOB_CONCURRENT_REQUESTS_MAX = 4
/** The minimum `Retry-After`, in seconds, for a client that the slot limit refused. */
export const LOB_RETRY_AFTER_S = 1
export const LOB_RANGE_DAYS_MAX = 31
export const LOB_INTERVAL_S_MIN = 1
export const LOB_INTERVAL_S_MAX = 3600
export const LOB_INTERVAL_S_DEFAULT = 60
export const LOB_LEVELS_MIN = 1
export const LOB_LEVELS_MAX = 50
export const LOB_LEVELS_DEFAULT = 10

/** Body bytes of the first chunk: small, for an early first byte. */
export const FIRST_CHUNK_BYTES = 16 * 1024
/** Each chunk may be this many times as large as the one before, up to CHUNK_BYTES. */
export const CHUNK_GROWTH = 8
/**
 * Body bytes of a chunk in a long answer. Each chunk costs one message in each direction and a system call; with chunks of a
 * quarter of this size, an answer takes 1.5 times as long (bench/lob-end-to-end.ts).
 */
export const CHUNK_BYTES = 1024 * 1024
/** Chunks a worker may have in flight before the main thread returns a credit. */
export const CHUNK_WINDOW = 4
/** Chunk buffers a thread keeps from request to request. */
export const CHUNK_BUFFERS_KEPT_MAX = 8
/**
 * The rows of one section always fit into this many chunks; with usual quantities they fill a third of them. A thread that is
 * needed elsewhere may send all of them, so that no client can hold it. Hours with more rows are divided; then both threads decode
 * the row groups at the cut.
 */
export const LOB_SECTION_CHUNKS_MAX = 80
/** Snapshot rows of one row group in a parquet answer; the first row group is smaller, for an early first byte. */
export const PARQUET_OUT_ROW_GROUP_ROWS = 16_384

/** The maximum of rows in a lob.v1 row group (contract.md 34). */
export const LOB_ROW_GROUP_ROWS_MAX = 40_960
/** Events of one UTC hour and series that the fold sorts in memory at once; more are sorted in passes. */
export const FOLD_ROWS_MAX = 2_000_000
/** Recorded events held in memory, in bytes, before they spill to temporary files. */
export const SPILL_BUFFER_BYTES_MAX = 64 * 1024 * 1024
/** Bytes of a market id. The longest known have 145. */
export const MARKET_ID_BYTES_MAX = 256
/** Age at which a temporary file that a killed process left is removed. */
export const STALE_TEMP_AGE_MS = 24 * 60 * 60 * 1000
/** Bytes of one recorded message (one ndjson line). One exchange raised its frame limit to 64 MiB in 2026. */
export const IMPORT_LINE_BYTES_MAX = 64 * 1024 * 1024
/** Bytes of a footer. A reader treats a larger one as damaged. */
export const FOOTER_BYTES_MAX = 64 * 1024 * 1024
/** Bytes of one row group (compressed or not) that a reader accepts. */
export const ROW_GROUP_BYTES_MAX = 512 * 1024 * 1024
/** Bytes of an uncompressed page besides its values: padding of blocks; and for each value: its length, levels, run headers. */
export const PAGE_OVERHEAD_BYTES_MAX = 64 * 1024
export const VALUE_OVERHEAD_BYTES_MAX = 8

/** Bytes of a request target (path and query); a longer one gets 414. */
export const REQUEST_TARGET_BYTES_MAX = 8 * 1024
/** Bytes of request line and header fields together; uWebSockets itself answers a longer head with 431. */
export const REQUEST_HEAD_BYTES_MAX = 16 * 1024
/** A client that takes no byte for this long is disconnected. `BOOKCAST_STALL_TIMEOUT_MS` sets another value. */
export const STALL_TIMEOUT_MS_DEFAULT = 30_000
/** Body bytes written at once to a client that may be slow. A fast client gets whole chunks … */
export const BODY_PIECE_BYTES_MIN = 64 * 1024
/** … after it has taken this many times as much without filling its socket, which holds some megabytes. */
export const BODY_PIECE_SHARE = 64
/** Body bytes that a stream holds back for a stalled socket: each attempt to write sends one of them. */
export const BODY_RESERVE_BYTES = 1024
/** Body bytes that may be unsent when a stream ends its answer and frees its slot. */
export const BODY_LAST_BYTES_MAX = 64
/** A date's final climate report is due this long after the date's end in UTC: at 18:00 UTC on the next day. */
export const CLIMATE_FINAL_DUE_MS = 18 * 60 * 60 * 1000

/** Body bytes of an upstream's response, compressed or not, unless the upstream's own bound is set. */
export const UPSTREAM_BODY_BYTES_MAX_DEFAULT = 16 * 1024 * 1024
/** The longest wait of an upstream request for Bookcast's own rate limit. */
export const UPSTREAM_BUDGET_WAIT_MS_MAX = 10 * 60 * 1000

/** Characters of one METAR or SPECI. The longest known have about 400. */
export const METAR_TEXT_CHARACTERS_MAX = 2000

/** The maximum of entries in one response of the aviation weather feed, which truncates silently. */
export const AWC_ENTRIES_MAX = 400
/** The maximum of reports of one station per hour, routine and special. It keeps a request below the feed's maximum. */
export const AWC_REPORTS_PER_STATION_HOUR_MAX = 6
/** How far back the feed goes. */
export const AWC_HOURS_MAX = 15 * 24
/** A year of one station in GHCNh format has about 20 MB. */
export const NCEI_BODY_BYTES_MAX = 128 * 1024 * 1024

/** The longest stall or shutdown timeout that configuration accepts. */
export const CONFIGURED_TIMEOUT_MS_MAX = 3_600_000
/** Megabytes of JavaScript heap of one order-book thread; with more, the thread is ended. */
export const LOB_THREAD_HEAP_MB_MAX = 512
/** A thread that has not ended a cancelled task after this time is terminated. */
export const WORKER_CANCEL_TIMEOUT_MS = 10_000
/** Smaller bodies are not compressed, since they fit into one packet. */
export const COMPRESSED_BODY_BYTES_MIN = 1_400
/** What configuration accepts for the rate of a client, API keys and proxies. */
export const RATE_LIMIT_PER_SECOND_MAX = 1_000_000
/** Pages of series and markets. */
export const LIST_LIMIT_DEFAULT = 1_000
export const LIST_LIMIT_MAX = 10_000
/** /health: the timeout of a database check. */
export const HEALTH_CHECK_TIMEOUT_MS = 1_000
/** A synchronization longer ago than this is stale (contract.md 24). */
export const HEALTH_STALE_MS = 2 * 60 * 60 * 1000
/** A condition that lasts is logged again after this time. */
export const REMIND_MS = 60 * 60 * 1000

/** The server cancels a statement that runs longer. */
export const STORE_STATEMENT_TIMEOUT_MS_DEFAULT = 15_000
export const STORE_CONNECT_TIMEOUT_MS_DEFAULT = 5_000
/** Time after the statement timeout at which a silent server counts as lost and its connections are dropped. */
export const STORE_DEADLINE_GRACE_MS = 2_000
/** Rows of one read. Each read is a statement of its own and holds no connection afterwards. */
export const STORE_READ_BATCH_ROWS = 1_000

/** Bytes of one protocol message from or to the embedded store. */
export const EMBEDDED_MESSAGE_BYTES_MAX = 64 * 1024 * 1024
/** Response bytes that a client of the embedded store may leave unread before it is disconnected. */
export const EMBEDDED_UNREAD_BYTES_MAX = 256 * 1024 * 1024
/** Log lines are written when they have this many bytes, or a moment later (server/service/log.ts). */
export const LOG_BLOCK_BYTES = 16 * 1024
/** Longer lines bypass the block. */
export const LOG_LINE_BYTES_MAX = 64 * 1024
/** Bytes of the log that wait while stderr cannot be written; lines beyond them are dropped. */
export const LOG_WAITING_BYTES_MAX = 16 * 1024 * 1024

/**
 * Niceness of the threads for order books and bulk record requests. Threads for small requests run before them, and the event
 * loop, whose work is short but urgent, before both. On two processors with four streams and 150 requests/s, the p99 of the
 * event-loop delay is 32 ms without it and 19.9 ms with it, and a request's median 296 ms and 19 ms.
 */
export const LOB_THREAD_NICENESS = 10
/** Threads for small record requests. Bulk requests have a thread of their own (server/records/record-pool.ts). */
export const RECORD_THREADS = 2
/** Rows that all running small (or all running bulk) record requests may request together; a request counts with its `limit`. */
export const RECORD_ROWS_IN_FLIGHT_MAX = 2_000_000
/**
 * Requests that one such thread serves at once: they interleave while they wait for the store and for slow clients, but not while
 * they compute. Enough that a burst, or a second in which order books use the processors, is queued and not refused.
 */
export const RECORD_TASKS_PER_THREAD = 100
/** The minimum that a request counts with, so that there are never more requests than the threads accept. */
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
/** The forward fill ends for a market that has not traded for this long. */
export const CANDLE_FILL_GAP_DAYS_MAX = 366
/** Years in one climate-gap analysis. */
export const CLIMATE_GAP_YEARS_MAX = 10
export const CLIMATE_GAP_YEARS_DEFAULT = 5
/** The default `from` of candles and observations is this long before now. */
export const RECORD_RANGE_MS_DEFAULT = 24 * 60 * 60 * 1000
/**
 * Memory of one record thread's DuckDB; larger sorts spill to temporary files. It bounds the thread's memory outside the JavaScript
 * heap, except CANDLE_CACHE_BYTES_MAX and chunks in flight.
 */
export const DUCKDB_MEMORY_MB_MAX = 512
export const DUCKDB_TEMP_MB_MAX = 4_096
/**
 * Lake files that one record request may read. The threads' caches hold as many files: with fewer, a request for all of them
 * would read each file again.
 */
export const RECORD_LAKE_FILES_MAX = 5_000
/** Bytes of candle rows that a thread caches. */
export const CANDLE_CACHE_BYTES_MAX = 64 * 1024 * 1024
/** Rows of one read from the relational store in a record thread. */
export const RECORD_STORE_BATCH_ROWS = 5_000
/** Rows that a thread encodes before it yields to its other requests. */
export const RECORD_ENCODE_BATCH_ROWS = 4_096
/** Time zones that a thread caches, by requested name. */
export const ZONES_CACHED_MAX = 1_024
/** Attempts to plan a record request whose files or manifest change while it is read. */
export const RECORD_PLAN_ATTEMPTS_MAX = 3

/** An archive's window counts as complete this long after its end, since reports reach the archives late. */
export const INGEST_ARCHIVE_SETTLE_MS = 2 * 24 * 60 * 60 * 1000

/** Objects that one synchronization transfers at once. */
export const SYNC_PARALLEL_DEFAULT = 4
export const SYNC_PARALLEL_MAX = 64
/** Attempts for one object in one synchronization. */
export const SYNC_ATTEMPTS_MAX = 5
/** A transfer in which no byte moves for this long, or fewer than these arrive, is aborted and retried. */
export const SYNC_STALL_MS = 30_000
export const SYNC_STALL_BYTES = 16 * 1024
/** The system may hold this much of an upload after its last byte was handed over, and sends it at least this fast. */
export const SYNC_HELD_BYTES_MAX = 4 * 1024 * 1024
export const SYNC_HELD_BYTES_PER_MS_MIN = 32
/** Timeout of a request to object storage that transfers no object. */
export const SYNC_ANSWER_MS_MAX = 60_000
/** The largest object of one S3 PUT. */
export const SYNC_OBJECT_BYTES_MAX = 5 * 1024 * 1024 * 1024
/** For each object, the number of digests that are remembered as written by this synchronization. */
export const SYNC_OWN_DIGESTS_MAX = 4
/**
 * Pause between two synchronizations of a running process. A change in the books is in the lake after seconds, in object storage
 * at most this long later, and in a copy at most this long after that: about a minute in total.
 */
export const SYNC_INTERVAL_MS = 25 * 1000

/** A day's rows move to the lake this long after its end: most late reports and corrections have arrived by then. */
export const COMPACTION_DELAY_MS = 36 * 60 * 60 * 1000
export const COMPACTION_DELAY_HOURS_MAX = 24 * 366
export const COMPACTION_GRACE_MINUTES_MAX = 7 * 24 * 60
/** Memory limit of the database that writes a partition. */
export const COMPACTION_MEMORY = '512MB'

/** Payload bytes of one write-ahead record: the largest frame limit of an exchange. A larger frame closes the connection. */
export const WAL_PAYLOAD_BYTES_MAX = 64 * 1024 * 1024
/** Received frames are synced together: after this time, or when this many bytes wait. */
export const WAL_COMMIT_INTERVAL_MS = 100
export const WAL_COMMIT_BYTES = 1024 * 1024
/** A segment ends with its UTC hour or before it grows beyond this. */
export const WAL_SEGMENT_BYTES_MAX = 256 * 1024 * 1024
/** Bytes waiting for the disk: above HIGH, sockets are no longer read; below LOW, they are read again. */
export const WAL_QUEUE_BYTES_HIGH = 32 * 1024 * 1024
export const WAL_QUEUE_BYTES_LOW = 8 * 1024 * 1024
/** Bytes of a segment that the fold reads at once. */
export const WAL_READ_BYTES = 1024 * 1024
/** Interval of publishing the open date; longer if publishing takes more than a fifth of the time. */
export const RECORDER_PUBLISH_INTERVAL_MS = 3_000
/** Megabytes of JavaScript heap a fold thread may use. */
export const RECORDER_THREAD_HEAP_MB_MAX = 1024

/** Timeout of a feed's handshake, and of the response to a command. */
export const FEED_HANDSHAKE_TIMEOUT_MS = 10_000
