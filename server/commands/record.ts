// `bookcast record`: records exchanges' order books until it is told to stop. The log goes to stderr.

import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { pino } from 'pino'
import { exchanges } from '../exchanges/registry.ts'
import { startRecorder } from '../recorder/recorder.ts'
import { RECORD_SECRETS_HELP, seriesOptions } from '../recorder/recording-config.ts'
import type { Command, CommandIo } from './command.ts'
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
  const { logLevel, ...options } = config
  const destination = pino.destination({ fd: 2, sync: false })
  const logger = pino({ level: logLevel, base: null }, destination)
  try {
    mkdirSync(config.workDirectory, { recursive: true })
    const recorder = await startRecorder({ ...options, logger })
    const series = exchanges().flatMap(({ source }) => config[source]?.series ?? [])
    stdout.write(`Bookcast records ${series.join(', ')} into ${config.lake}\n`)
    const end = AbortSignal.any([signal, recorder.failed])
    if (!end.aborted) await once(end, 'abort')
    logger.info('stopping')
    await recorder.stop()
    logger.info('stopped')
    return recorder.failed.aborted ? 1 : 0
  } finally {
    destination.flushSync()
  }
}
