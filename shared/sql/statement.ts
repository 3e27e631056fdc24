// A statement as data: text with $1, $2, … and its parameters. Builders return statements and never run them, so the
// server and the workers run the same SQL on connections of their own. Values never enter the text.

/** A value of a parameter. Instants go as RFC 3339 text, bulk data as JSON text, lists as array literals. */
export type SqlParameter = string | number | bigint | boolean | null

export interface SqlStatement {
  readonly text: string
  readonly parameters: readonly SqlParameter[]
}

/** Runs a statement and resolves to its rows. */
export type RunStatement = <Row>(statement: SqlStatement) => Promise<readonly Row[]>

/** A parameter, and the SQL type that it is cast to. */
interface TypedValue {
  readonly value: SqlParameter
  readonly type: string
}

/** A statement, or a part of one that stands in others. */
export class Sql implements SqlStatement {
  /** What stands before, between and behind the values. */
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

/** A template of SQL. Parts of statements stand in it as they are; everything else is a parameter, numbers as int8. */
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

/** Names and other words of SQL, which come from the program alone. */
export function rawSql(words: string): Sql {
  return new Sql([words], [])
}

export function joinSql(parts: readonly Sql[], separator: string): Sql {
  return parts.reduce((all, part, at) => sql`${all}${rawSql(at === 0 ? '' : separator)}${part}`, rawSql(''))
}

/** `WHERE …` of those conditions that there are, joined with AND; nothing without one. */
export function whereAll(...conditions: readonly (Sql | false)[]): Sql {
  const all = conditions.filter((condition) => condition !== false)
  return all.length === 0 ? rawSql('') : sql`WHERE ${joinSql(all, ' AND ')}`
}

/** `{"a","b"}`: the array literal of some texts. */
export function listText(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`).join(',')}}`
}
