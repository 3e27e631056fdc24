// `bookcast record`: records exchanges' order books until it is stopped. The log goes to stderr.

import { recorderTask } from '../collect/recorder-task.ts'
import { exchanges } from '../exchanges/registry.ts'
import {
  readRecording,
  RECORD_SECRETS_HELP,
  RECORDER_OPTIONS,
  type RecordingConfig,
  seriesOptions,
} from '../recorder/recording-config.ts'
import { optionCommand } from './option-command.ts'
import { openLog } from '../service/log.ts'
import { describeOptions, type OptionDeclaration, type ParsedOptions } from '../options/options.ts'
import { LOG_LEVEL_OPTION, readLogLevel } from '../options/log-level.ts'
import { UsageError } from '../options/usage-error.ts'
import { USER_AGENT_OPTION } from '../ingest/ingest-config.ts'
import { refuseOldLayout } from '../lake/old-layout.ts'

// oxfmt-ignore
export const RECORD_OPTIONS: readonly OptionDeclaration[] = [
  { name: 'lake', placeholder: '<dir>', description: 'the lake to record into; required' },
  ...RECORDER_OPTIONS,
  ...exchanges().flatMap(({ exchange }) => exchange.sharedOptions),
  USER_AGENT_OPTION,
  LOG_LEVEL_OPTION,
]

const HELP = `Usage: bookcast record --lake <dir> --${seriesOptions()[0]!.name} <list> [options]

Records the order books of open markets into a lake: today's books are seconds old, closed dates become finished files.

${describeOptions(RECORD_OPTIONS)}

${RECORD_SECRETS_HELP}
`

/** @throws {UsageError} that names the wrong option or variable, and never repeats a secret */
export function recordingOf(options: ParsedOptions, env: NodeJS.ProcessEnv): RecordingConfig {
  const recording = readRecording(options, env, options.demand('lake').text)
  if (recording !== null) return recording
  const names = seriesOptions().map(({ name }) => `--${name}`)
  throw new UsageError(`${names.join(' or ')} must name what to record`)
}

export const recordCommand = optionCommand(RECORD_OPTIONS, HELP, async (options, { env, stdout, signal }) => {
  const config = recordingOf(options, env)
  const logLevel = readLogLevel(options)
  const { lake } = config
  await refuseOldLayout(lake)
  const { destination, logger } = openLog(logLevel, false)
  try {
    const recorded = exchanges().filter(({ source }) => config[source] !== undefined)
    const series = recorded.flatMap(({ source }) => config[source]?.series ?? [])
    stdout.write(`Bookcast records ${series.join(', ')} into ${lake}\n`)
    const tasks = recorded.map(({ source }) => recorderTask({ recording: config, exchange: source, logger }))
    await Promise.all(tasks.map((task) => task.run(signal)))
    logger.info('stopped')
    return 0
  } finally {
    destination.flushSync()
  }
})
