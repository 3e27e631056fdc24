// The options of `bookcast serve`: names, variables, defaults and help texts.

import { RATE_LIMIT_PER_SECOND_MAX, STALL_TIMEOUT_MS_DEFAULT } from '../../shared/limits.ts'
import type { OptionDeclaration } from '../options/options.ts'
import { LOG_LEVEL_OPTION } from '../options/log-level.ts'
import { FAIRNESS_OPTIONS } from './fairness-options.ts'
import { STORE_OPTIONS } from '../storage/store-options.ts'
import { SYNC_OPTIONS } from '../sync/sync-options.ts'

/** The time that running streams get to finish after SIGTERM. `BOOKCAST_SHUTDOWN_TIMEOUT_MS` sets another value. */
const SHUTDOWN_TIMEOUT_MS_DEFAULT = 30_000

export const SERVE_OPTIONS = [
  { name: 'lake', placeholder: '<dir>', description: 'the lake to serve; required' },
  {
    name: 'config',
    placeholder: '<file>',
    description:
      'a JSON file of these options, without their dashes; the command line and environment override it',
    isNotInFile: true,
  },
  {
    name: 'check-config',
    description: 'check the configuration, print it without secrets, and exit',
    isNotInFile: true,
  },
  { name: 'port', placeholder: '<n>', description: 'TCP port, 0 for any free one', default: '8080' },
  { name: 'host', placeholder: '<addr>', description: 'address to listen on', default: '127.0.0.1' },
  ...STORE_OPTIONS,
  {
    name: 'sample-records',
    description: 'load the generated sample records into a store that has no series',
  },
  {
    name: 'store',
    placeholder: '<on|off>',
    description: 'off: no relational store; the server serves only the order books of the lake',
    default: 'on',
  },
  {
    name: 'collect',
    description:
      'also collect data in this process, configured by the environment variables of "bookcast ingest --help"',
  },
  {
    name: 'explorer',
    placeholder: '<on|off>',
    description: 'off: no page at /, only the list of endpoints',
    default: 'on',
  },
  {
    name: 'metrics',
    placeholder: '<where>',
    description: '"on" for /metrics on the port above, "<host>:<port>" for one of its own, "off"',
    default: 'on',
  },
  {
    name: 'api-keys',
    placeholder: '<name>=<key>,…',
    description:
      'clients that may request data; in the file a list of {"name", "sha256"}. Default: no key is needed',
    env: 'BOOKCAST_API_KEYS',
    isSecret: true,
  },
  {
    name: 'rate-limit',
    placeholder: '<n>',
    description: `requests per second that one client may sustain, at most ${RATE_LIMIT_PER_SECOND_MAX}. None: no limit`,
  },
  {
    name: 'rate-burst',
    placeholder: '<n>',
    description: 'requests that one client may send at once. Default: the requests of two seconds',
  },
  {
    name: 'trusted-proxies',
    placeholder: '<n>',
    description: 'proxies in front that each add an entry to X-Forwarded-For',
    default: '0',
  },
  ...SYNC_OPTIONS,
  {
    name: 'keep-versions',
    placeholder: '<days>',
    description:
      'days for which replaced lake files are kept, so that requests with version are answered; 0: none',
    default: '0',
  },
  {
    name: 'cors-origins',
    placeholder: '<url>,…',
    description: 'origins whose pages may read responses, or "*". Default: no other origin',
  },
  {
    name: 'stall-timeout-ms',
    placeholder: '<ms>',
    description: 'disconnect a client that accepts no byte for this long',
    default: String(STALL_TIMEOUT_MS_DEFAULT),
  },
  ...FAIRNESS_OPTIONS,
  {
    name: 'shutdown-timeout-ms',
    placeholder: '<ms>',
    description: 'time that running requests get to finish after SIGTERM',
    default: String(SHUTDOWN_TIMEOUT_MS_DEFAULT),
  },
  LOG_LEVEL_OPTION,
] as const satisfies readonly OptionDeclaration[]
