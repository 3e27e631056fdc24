// Settings that uWebSockets.js reads from the environment while it is loaded.

import { REQUEST_HEAD_BYTES_MAX } from '../../shared/limits.ts'

// The default of 4 KiB is less than the allowed request target.
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] = String(REQUEST_HEAD_BYTES_MAX)
