// The options of `bookcast serve`: names, variables, defaults and the sentences of its help text.

import { RATE_LIMIT_PER_SECOND_MAX, STALL_TIMEOUT_MS_DEFAULT } from '../shared/limits.ts'
import type { OptionDeclaration } from './options/options.ts'
import { LOG_LEVEL_OPTION } from './options/log-level.ts'
import { FAIRNESS_OPTIONS } from './fairness-options.ts'
import { STORE_OPTIONS } from './storage/store-options.ts'
import { SYNC_OPTIONS } from './sync/sync-options.ts'

/** Running streams get so long to finish after SIGTERM. `BOOKCAST_SHUTDOWN_TIMEOUT_MS` sets another value. */
const SHUTDOWN_TIMEOUT_MS_DEFAULT = 30_000

export const SERVE_OPTIONS = [
  {
    name: 'lake',
    placeholder: '<dir>',
    description: 'the lake to serve; required',
    env: 'BOOKCAST_LAKE',
  },
  {
    name: 'config',
    placeholder: '<file>',
    description: 'a JSON object of these options without their dashes; they win over it',
    env: 'BOOKCAST_CONFIG',
    isNotInFile: true,
  },
  {
    name: 'check-config',
    placeholder: '',
    description: 'check the configuration, print it without its secrets, and end',
    env: 'BOOKCAST_CHECK_CONFIG',
    isFlag: true,
    isNotInFile: true,
  },
  {
    name: 'port',
    placeholder: '<n>',
    description: 'TCP port, 0 for any free one',
    env: 'BOOKCAST_PORT',
    default: '8080',
  },
  {
    name: 'host',
    placeholder: '<addr>',
    description: 'address to listen on',
    env: 'BOOKCAST_HOST',
    default: '127.0.0.1',
  },
  ...STORE_OPTIONS,
  {
    name: 'sample-records',
    placeholder: '',
    description: 'fill a store that has no series with the generated sample records',
    env: 'BOOKCAST_SAMPLE_RECORDS',
    isFlag: true,
  },
  {
    name: 'store',
    placeholder: '<on|off>',
    description: 'off: no relational store; only the order books of the lake are served',
    env: 'BOOKCAST_STORE',
    default: 'on',
  },
  {
    name: 'collect',
    placeholder: '',
    description:
      'collect data in this process too, set up as by "bookcast ingest --help" from the environment',
    env: 'BOOKCAST_COLLECT',
    isFlag: true,
  },
  {
    name: 'explorer',
    placeholder: '<on|off>',
    description: 'off: no page at /, only the list of endpoints',
    env: 'BOOKCAST_EXPLORER',
    default: 'on',
  },
  {
    name: 'metrics',
    placeholder: '<where>',
    description: '"on" for /metrics on the port above, "<host>:<port>" for one of its own, "off"',
    env: 'BOOKCAST_METRICS',
    default: 'on',
  },
  {
    name: 'api-keys',
    placeholder: '<name>=<key>,…',
    description:
      'clients that may ask for data; in the file a list of {"name", "sha256"}. None: everybody may',
    env: 'BOOKCAST_API_KEYS',
    isSecret: true,
  },
  {
    name: 'rate-limit',
    placeholder: '<n>',
    description: `requests a second that one client may keep up, at most ${RATE_LIMIT_PER_SECOND_MAX}. None: no limit`,
    env: 'BOOKCAST_RATE_LIMIT',
  },
  {
    name: 'rate-burst',
    placeholder: '<n>',
    description: 'requests that one client may make at once. None: as many as in two seconds',
    env: 'BOOKCAST_RATE_BURST',
  },
  {
    name: 'trusted-proxies',
    placeholder: '<n>',
    description: 'proxies in front that each add an entry to X-Forwarded-For',
    env: 'BOOKCAST_TRUSTED_PROXIES',
    default: '0',
  },
  ...SYNC_OPTIONS,
  {
    name: 'cors-origins',
    placeholder: '<url>,…',
    description: 'origins whose pages may read answers, or "*". None: no page of another origin',
    env: 'BOOKCAST_CORS_ORIGINS',
  },
  {
    name: 'stall-timeout-ms',
    placeholder: '<ms>',
    description: 'cut off a client that takes no byte for so long',
    env: 'BOOKCAST_STALL_TIMEOUT_MS',
    default: String(STALL_TIMEOUT_MS_DEFAULT),
  },
  ...FAIRNESS_OPTIONS,
  {
    name: 'shutdown-timeout-ms',
    placeholder: '<ms>',
    description: 'time running requests have to finish after SIGTERM',
    env: 'BOOKCAST_SHUTDOWN_TIMEOUT_MS',
    default: String(SHUTDOWN_TIMEOUT_MS_DEFAULT),
  },
  LOG_LEVEL_OPTION,
] as const satisfies readonly OptionDeclaration[]
