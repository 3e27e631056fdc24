// The parameter `version` of the endpoints whose rows come from lake files, and its documentation for /openapi.json.

import type { ErrorCode } from '../../shared/errors.ts'
import type { LakeDataset } from '../../shared/lake-layout.ts'
import { type ParameterRule, quote } from '../query/parameter-parser.ts'
import { type Parameter, textParameter } from '../query/parameters.ts'

export const VERSION_PARAMETER = textParameter(
  'version',
  'A version of the lake, as Lake-Version or /api/v1/versions name it: the server reads only its files, or refuses the request.',
)

export const VERSION_ERRORS = [
  'unknown_version',
  'not_pinnable',
  'version_gone',
] as const satisfies readonly ErrorCode[]

export const VERSION_HEADER: Readonly<Record<string, string>> = {
  'Lake-Version':
    'The version of the lake; left out if a file of the answer is still open, or while the server has not read a changed file.',
}

/** The given rule, and the check that `version` is one of the dataset's. */
export function versioned<const P extends readonly Parameter[]>(
  dataset: LakeDataset,
  rule: ParameterRule<P>,
): ParameterRule<readonly [...P, typeof VERSION_PARAMETER]> {
  return ({ has, values }, report) => {
    rule({ has, values } as unknown as Parameters<ParameterRule<P>>[0], report)
    const { version } = values as { readonly version?: string }
    if (version === undefined || new RegExp(`^${dataset}-[\\w-]{12}$`).test(version)) return
    report(
      'version',
      `version must be an id of /api/v1/versions?dataset=${dataset}, such as ${dataset}-4W1BqSXlK0zv, not ${quote(version)}.`,
    )
  }
}
