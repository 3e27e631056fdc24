// A command that takes options and, if it says so, files.

import { type OptionDeclaration, type ParsedOptions, parseOptions } from '../options/options.ts'
import type { Command, CommandIo } from './command.ts'
import { showHelp } from './terminal.ts'

/** @param help the text of --help */
export function optionCommand(
  declarations: readonly OptionDeclaration[],
  help: string,
  run: (options: ParsedOptions, io: CommandIo) => Promise<number>,
  settings: { readonly takesFiles?: boolean } = {},
): Command {
  return async (args, io) => {
    const options = parseOptions(args, io.env, declarations, settings)
    return options.help ? showHelp(help, io.stdout) : await run(options, io)
  }
}
