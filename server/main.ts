#!/usr/bin/env node
// The command-line program. It finds the command, owns the process's signals and turns what a command returns or throws
// into an exit code: 0 done, 1 failed, 2 wrong use. Commands are loaded when they are asked for, so that serving does
// not load what importing needs.

import { lobSources } from '../shared/lob-sources.ts'
import { type Command, type CommandIo } from './commands/command.ts'
import { UsageError } from './options/usage-error.ts'
import { fitted, styleOf } from './commands/terminal.ts'
import { closest } from './options/closest.ts'
import { processEnvironment } from './config.ts'
import { readVersion } from './version.ts'

interface CommandEntry {
  readonly summary: string
  readonly load: () => Promise<Command>
}

const COMMANDS: ReadonlyMap<string, CommandEntry> = new Map([
  [
    'serve',
    {
      summary: 'serve a lake over HTTP',
      load: async () => (await import('./commands/serve.ts')).serveCommand,
    },
  ],
  [
    'import',
    {
      summary: 'turn recorded exchange messages into order-book files of a lake',
      load: async () => (await import('./commands/import.ts')).importCommand,
    },
  ],
  [
    'ingest',
    {
      summary: 'collect markets, candles, weather and climate reports',
      load: async () => (await import('./commands/ingest.ts')).ingestCommand,
    },
  ],
  [
    'status',
    {
      summary: 'show how current every source of data is',
      load: async () => (await import('./commands/status.ts')).statusCommand,
    },
  ],
  [
    'verify',
    {
      summary: 'count what is stored against what there should be, and open what is missing',
      load: async () => (await import('./commands/verify.ts')).verifyCommand,
    },
  ],
  [
    'sync',
    {
      summary: 'bring a lake and object storage up to date with each other',
      load: async () => (await import('./commands/sync.ts')).syncCommand,
    },
  ],
  [
    'prune',
    {
      summary: 'show and remove order-book files of old dates',
      load: async () => (await import('./commands/prune.ts')).pruneCommand,
    },
  ],
  [
    'compact',
    {
      summary: 'move closed days of candles and observations to a lake',
      load: async () => (await import('./commands/compact.ts')).compactCommand,
    },
  ],
  [
    'record',
    {
      summary: "record exchanges' order books into a lake",
      load: async () => (await import('./commands/record.ts')).recordCommand,
    },
  ],
  [
    'sample-data',
    {
      summary: 'write the generated sample lake',
      load: async () => (await import('./commands/sample-data.ts')).sampleDataCommand,
    },
  ],
])

const EXIT_FAILED = 1
const EXIT_WRONG_USE = 2

const NAME_COLUMNS = 16

function helpText(stream: CommandIo['stdout']): string {
  const { bold, dim } = styleOf(stream, processEnvironment)
  const lines = [...COMMANDS].map(
    ([name, { summary }]) => `  ${bold(name)}${' '.repeat(NAME_COLUMNS - 2 - name.length)}${summary}\n`,
  )
  const text = `Usage: bookcast <command> [options]

Serves order books, candles, weather and climate reports of temperature markets, and collects them.

${bold('Commands:')}
${lines.join('')}
${bold('To begin:')}
  bookcast serve --lake <dir>                            ${dim('a lake that you have')}
  bookcast import --source ${lobSources()[0]} --lake <dir> <files>   ${dim('a lake out of recordings')}
  bookcast sample-data --out <dir>                       ${dim('an invented lake, in <dir>/lake')}

"bookcast <command> --help" describes a command. "bookcast --version" prints the version.
`
  return fitted(text, stream)
}

/** Aborts at the first SIGINT or SIGTERM; the second ends the process as the signal itself would have. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  for (const [name, number] of [
    ['SIGINT', 2],
    ['SIGTERM', 15],
  ] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) {
        // Should a thread that a file does not answer hold the exit up, the third signal ends the process by itself.
        process.removeAllListeners(name)
        process.exit(128 + number)
      }
      controller.abort(name)
    })
  }
  return controller.signal
}

async function runCommand(name: string, args: readonly string[]): Promise<number> {
  const entry = COMMANDS.get(name)
  if (entry === undefined) {
    const { red } = styleOf(process.stderr, processEnvironment)
    const meant = closest(name, COMMANDS.keys())
    const next = meant === undefined ? `\n${helpText(process.stderr)}` : `Did you mean "bookcast ${meant}"?\n`
    process.stderr.write(`${red('bookcast:')} there is no command ${JSON.stringify(name)}\n${next}`)
    return EXIT_WRONG_USE
  }
  const { stdin, stdout, stderr } = process
  const io: CommandIo = { env: processEnvironment, stdin, stdout, stderr, signal: stopSignal() }
  try {
    const command = await entry.load()
    return await command(args, io)
  } catch (error) {
    const isUsage = error instanceof UsageError
    const text = isUsage
      ? `${error.message}\n"bookcast ${name} --help" lists the options.`
      : error instanceof Error
        ? error.message
        : String(error)
    stderr.write(`${styleOf(stderr, io.env).red(`bookcast ${name}:`)} ${text}\n`)
    return isUsage ? EXIT_WRONG_USE : EXIT_FAILED
  }
}

async function main(args: readonly string[]): Promise<number> {
  const [first, ...rest] = args
  if (first === undefined) {
    process.stderr.write(helpText(process.stderr))
    return EXIT_WRONG_USE
  }
  if (first === '--help' || first === '-h' || first === 'help') process.stdout.write(helpText(process.stdout))
  else if (first === '--version' || first === '-v') process.stdout.write(`${readVersion()}\n`)
  else return runCommand(first, rest)
  return 0
}

process.exitCode = await main(process.argv.slice(2))
