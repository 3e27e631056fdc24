// uWebSockets.js, loaded with the settings it reads only then.

import { REQUEST_HEAD_BYTES_MAX } from '../../shared/limits.ts'

// Its own default of 4 KiB is less than a request target may have here.
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] = String(REQUEST_HEAD_BYTES_MAX)
export const uWS = await import('uWebSockets.js')
