// `bookcast record`: records exchanges' order books until it is stopped. The log goes to stderr.

import { RecorderTask } from '../collect/recorder-task.ts'
import { exchanges } from '../exchanges/registry.ts'
import { RECORD_SECRETS_HELP, seriesOptions } from '../recorder/recording-config.ts'
import type { Command, CommandIo } from './command.ts'
import { openLog } from '../service/log.ts'
import { describeOptions } from '../options/options.ts'
import { refuseOldLayout } from '../lake/old-layout.ts'
import { RECORD_OPTIONS, readRecordConfig } from './record-config.ts'
import type { RecordConfig } from './record-config.ts'
import { showHelp } from './terminal.ts'

const HELP = `Usage: bookcast record --lake <dir> --${seriesOptions()[0]!.name} <list> [options]

Records the order books of open markets into a lake: today's books are seconds old, closed dates become finished files.

${describeOptions(RECORD_OPTIONS)}

${RECORD_SECRETS_HELP}
`

export const recordCommand: Command = async (args, io) => {
  const config = readRecordConfig(args, io.env)
  if (config === 'help') return showHelp(HELP, io.stdout)
  await refuseOldLayout(config.lake)
  return await record(config, io)
}

async function record(config: RecordConfig, { stdout, signal }: CommandIo): Promise<number> {
  const { logLevel, lake } = config
  const { destination, logger } = openLog(logLevel, false)
  try {
    const recorded = exchanges().filter(({ source }) => config[source] !== undefined)
    const series = recorded.flatMap(({ source }) => config[source]?.series ?? [])
    stdout.write(`Bookcast records ${series.join(', ')} into ${lake}\n`)
    const tasks = recorded.map(
      ({ source }) => new RecorderTask({ recording: config, exchange: source, logger }),
    )
    await Promise.all(tasks.map((task) => task.run(signal)))
    logger.info('stopped')
    return 0
  } finally {
    destination.flushSync()
  }
}
