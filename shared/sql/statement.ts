// A statement as data: text with $1, $2, … and its parameters. Builders return statements and never run them, so that server and
// workers run the same SQL on their own connections. Values are never part of the text.

/** A parameter's value. Instants are passed as RFC 3339 text, bulk data as JSON text, lists as array literals. */
export type SqlParameter = string | number | bigint | boolean | null

export interface SqlStatement {
  readonly text: string
  readonly parameters: readonly SqlParameter[]
}

/** Runs a statement and resolves to its rows. */
export type RunStatement = <Row>(statement: SqlStatement) => Promise<readonly Row[]>

/** A parameter with the SQL type to which it is cast. */
interface TypedValue {
  readonly value: SqlParameter
  readonly type: string
}

/** A statement, or a part of other statements. */
export class Sql implements SqlStatement {
  /** The texts before, between and after the values. */
  readonly words: readonly string[]
  readonly values: readonly TypedValue[]

  constructor(words: readonly string[], values: readonly TypedValue[]) {
    this.words = words
    this.values = values
  }

  get text(): string {
    return this.words.reduce((text, word, at) => `${text}$${at}::${this.values[at - 1]!.type}${word}`)
  }

  get parameters(): readonly SqlParameter[] {
    return this.values.map(({ value }) => value)
  }
}

/** A template of SQL. Parts that are `Sql` are inserted as text; all others become parameters, numbers as int8. */
export function sql(
  words: readonly string[],
  ...parts: readonly (Sql | TypedValue | string | number | bigint)[]
): Sql {
  const texts = [words[0]!]
  const values: TypedValue[] = []
  for (const [at, part] of parts.entries()) {
    const piece = part instanceof Sql ? part : new Sql(['', ''], [valueOf(part)])
    const [first, ...others] = piece.words
    texts.push(texts.pop()! + first!, ...others)
    texts.push(texts.pop()! + words[at + 1]!)
    values.push(...piece.values)
  }
  return new Sql(texts, values)
}

function valueOf(part: TypedValue | string | number | bigint): TypedValue {
  if (typeof part === 'object') return part
  return typedValue(part, typeof part === 'string' ? 'text' : 'int8')
}

export function typedValue(value: SqlParameter, type: string): TypedValue {
  return { value, type }
}

/** An instant given in milliseconds since the epoch. */
export function instantValue(instantMs: number): TypedValue {
  return typedValue(new Date(instantMs).toISOString(), 'timestamptz')
}

export function listValue(texts: readonly string[]): TypedValue {
  return typedValue(listText(texts), 'text[]')
}

/** SQL text, such as names. It must come from the program, never from a request. */
export function rawSql(words: string): Sql {
  return new Sql([words], [])
}

export function joinSql(parts: readonly Sql[], separator: string): Sql {
  return parts.reduce((all, part, at) => sql`${all}${rawSql(at === 0 ? '' : separator)}${part}`, rawSql(''))
}

/** `WHERE …` of all conditions that are not false, joined with AND; empty if there are none. */
export function whereAll(...conditions: readonly (Sql | false)[]): Sql {
  const all = conditions.filter((condition) => condition !== false)
  return all.length === 0 ? rawSql('') : sql`WHERE ${joinSql(all, ' AND ')}`
}

/** The array literal of the given texts: `{"a","b"}`. */
export function listText(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`).join(',')}}`
}
