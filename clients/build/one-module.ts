// The TypeScript client as one ES module and one declaration file, so that it can be served, saved and imported as a single file.
// Its modules are concatenated, dependencies first. They import only each other, and no two declare the same name. Names that the
// entry does not export stay internal.

import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

const BINDING = /^(import|export)\s+(type\s+)?(\*|\{[^}]*\})\s+from\s+'([^']+)';?\n/gm
const EXPORTED =
  /^export (?=(?:declare )?(?:async )?(?:abstract )?(class|const|function\*?|interface|type) (\w+))/gm

interface Module {
  readonly path: string
  readonly text: string
  /** Its import and export statements that refer to other modules. */
  readonly bindings: readonly RegExpExecArray[]
}

/** The text of a module and all its imports, without the statements that connect them. */
export async function oneModule(entry: string, extension: '.js' | '.d.ts'): Promise<string> {
  const modules: Module[] = []
  const seen = new Set<string>()
  const placeOf = (from: string, specifier: string): string => {
    if (!/^\.\/[\w-]+\.(?:js|ts)$/.test(specifier)) throw new Error(`${from} imports ${specifier}`)
    return join(dirname(from), basename(specifier).replace(/\.(?:js|ts)$/, extension))
  }
  const add = async (path: string): Promise<void> => {
    if (seen.has(path)) return
    seen.add(path)
    const text = await readFile(path, 'utf8')
    const bindings = [...text.matchAll(BINDING)]
    for (const [, , , , specifier = ''] of bindings) await add(placeOf(path, specifier))
    modules.push({ path, text, bindings })
  }
  await add(entry)
  const texts = modules.map((each) => {
    const isPublic = (name: string, isValue: boolean): boolean =>
      each.path === entry ||
      (modules.at(-1)?.bindings ?? []).some(
        ([, how, type, names = '', specifier = '']) =>
          how === 'export' &&
          placeOf(entry, specifier) === each.path &&
          (names === '*' ? !(isValue && type !== undefined) : new RegExp(`\\b${name}\\b`).test(names)),
      )
    return unbound(each, isPublic)
  })
  return `${texts.join('\n\n')}\nexport {}\n`
}

function unbound({ path, text }: Module, isPublic: (name: string, isValue: boolean) => boolean): string {
  const rest = text.replaceAll(BINDING, '').replace(/^\/\/# sourceMappingURL=.*\n?/m, '')
  if (/^\s*(?:import\s*['"{*\w]|export\b.*\bfrom\s+')/m.test(rest))
    throw new Error(`${path} has an import that cannot be taken apart`)
  return rest
    .replaceAll(EXPORTED, (statement: string, kind: string, name: string) =>
      isPublic(name, kind !== 'interface' && kind !== 'type') ? statement : '',
    )
    .trim()
}
