// What uWebSockets.js reads from the environment while it is loaded.

import { REQUEST_HEAD_BYTES_MAX } from '../../shared/limits.ts'

// Its own default of 4 KiB is less than a request target may have here.
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] = String(REQUEST_HEAD_BYTES_MAX)
