// The command-line program without its process. It finds the command and turns its result or error into an exit code: 0 done,
// 1 failed, 2 wrong use. Commands are loaded on demand, so that serving does not load the code of importing.

import { lobSources } from '../shared/lob-sources.ts'
import { type Command, type CommandIo } from './commands/command.ts'
import { UsageError } from './options/usage-error.ts'
import { fitted, styleOf } from './commands/terminal.ts'
import { closest } from './options/closest.ts'
import { readVersion } from './http/version.ts'

/** The parts of the process that the program uses. */
export interface ProgramIo extends Omit<CommandIo, 'signal'> {
  /** Called when a command begins; see CommandIo. */
  readonly stopSignal: () => AbortSignal
}

interface CommandEntry {
  readonly summary: string
  readonly load: () => Promise<Command>
}

const COMMANDS: ReadonlyMap<string, CommandEntry> = new Map(
  Object.entries({
    serve: {
      summary: 'serve a lake over HTTP',
      load: async () => (await import('./commands/serve.ts')).serveCommand,
    },
    import: {
      summary: 'turn recorded exchange messages into order-book files of a lake',
      load: async () => (await import('./commands/import.ts')).importCommand,
    },
    rebuild: {
      summary: 'derive order-book files of a lake again from its raw segments',
      load: async () => (await import('./commands/rebuild.ts')).rebuildCommand,
    },
    ingest: {
      summary: 'collect markets, candles, weather and climate reports',
      load: async () => (await import('./commands/ingest.ts')).ingestCommand,
    },
    status: {
      summary: 'show how current each data source is',
      load: async () => (await import('./commands/status.ts')).statusCommand,
    },
    verify: {
      summary: 'compare stored data with what should exist, and reopen missing windows',
      load: async () => (await import('./commands/verify.ts')).verifyCommand,
    },
    sync: {
      summary: 'synchronize a lake with object storage',
      load: async () => (await import('./commands/sync.ts')).syncCommand,
    },
    migrate: {
      summary: "rename the files of a lake of version 0.1 to today's layout",
      load: async () => (await import('./commands/migrate.ts')).migrateCommand,
    },
    prune: {
      summary: 'list and remove order-book files and raw segments of old dates',
      load: async () => (await import('./commands/prune.ts')).pruneCommand,
    },
    compact: {
      summary: 'move closed days of candles and observations to a lake',
      load: async () => (await import('./commands/compact.ts')).compactCommand,
    },
    export: {
      summary: 'export years of a lake in parts, to a directory or a bucket',
      load: async () => (await import('./commands/export.ts')).exportCommand,
    },
    work: {
      summary: 'make the parts of submitted exports',
      load: async () => (await import('./commands/export-queue.ts')).workCommand,
    },
    record: {
      summary: "record exchanges' order books into a lake",
      load: async () => (await import('./commands/record.ts')).recordCommand,
    },
    'sample-data': {
      summary: 'write the generated sample lake',
      load: async () => (await import('./commands/sample-data.ts')).sampleDataCommand,
    },
  }),
)

const EXIT_FAILED = 1
const EXIT_WRONG_USE = 2

const NAME_COLUMNS = 16

function helpText(stream: CommandIo['stdout'], env: CommandIo['env']): string {
  const { bold, dim } = styleOf(stream, env)
  const lines = [...COMMANDS].map(
    ([name, { summary }]) => `  ${bold(name)}${' '.repeat(NAME_COLUMNS - 2 - name.length)}${summary}\n`,
  )
  const text = `Usage: bookcast <command> [options]

Serves and collects order books, candles, weather and climate reports of temperature markets.

${bold('Commands:')}
${lines.join('')}
${bold('To begin:')}
  bookcast serve --lake <dir>                            ${dim('serve an existing lake')}
  bookcast import --source ${lobSources()[0]} --lake <dir> <files>   ${dim('make a lake from recordings')}
  bookcast sample-data --out <dir>                       ${dim('make an invented lake in <dir>/lake')}

"bookcast <command> --help" describes a command. "bookcast --version" prints the version.
`
  return fitted(text, stream)
}

async function runCommand(name: string, args: readonly string[], program: ProgramIo): Promise<number> {
  const { env, stdin, stdout, stderr } = program
  const entry = COMMANDS.get(name)
  if (entry === undefined) {
    const { red } = styleOf(stderr, env)
    const meant = closest(name, COMMANDS.keys())
    const next = meant === undefined ? `\n${helpText(stderr, env)}` : `Did you mean "bookcast ${meant}"?\n`
    stderr.write(`${red('bookcast:')} there is no command ${JSON.stringify(name)}\n${next}`)
    return EXIT_WRONG_USE
  }
  const io: CommandIo = { env, stdin, stdout, stderr, signal: program.stopSignal() }
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
    stderr.write(`${styleOf(stderr, env).red(`bookcast ${name}:`)} ${text}\n`)
    return isUsage ? EXIT_WRONG_USE : EXIT_FAILED
  }
}

/** Runs the program with its arguments and resolves to the exit code. */
export async function runProgram(args: readonly string[], io: ProgramIo): Promise<number> {
  const { env, stdout, stderr } = io
  const [first, ...rest] = args
  if (first === undefined) {
    stderr.write(helpText(stderr, env))
    return EXIT_WRONG_USE
  }
  if (first === 'help' && rest[0] !== undefined) return runCommand(rest[0], ['--help'], io)
  if (first === '--help' || first === '-h' || first === 'help') stdout.write(helpText(stdout, env))
  else if (first === '--version' || first === '-v') stdout.write(`${readVersion()}\n`)
  else return runCommand(first, rest, io)
  return 0
}
