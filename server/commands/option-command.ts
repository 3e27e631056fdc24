// A command whose arguments are options alone.

import { type OptionDeclaration, type ParsedOptions, parseOptions } from '../options/options.ts'
import type { Command, CommandIo } from './command.ts'
import { showHelp } from './terminal.ts'

/** `help` is what --help prints. */
export function optionCommand(
  declarations: readonly OptionDeclaration[],
  help: string,
  run: (options: ParsedOptions, io: CommandIo) => Promise<number>,
): Command {
  return async (args, io) => {
    const options = parseOptions(args, io.env, declarations)
    return options.help ? showHelp(help, io.stdout) : await run(options, io)
  }
}
