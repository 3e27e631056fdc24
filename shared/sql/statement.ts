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

/** Collects parameters and conditions while a statement's text is put together. */
export class StatementBuilder {
  readonly #parameters: SqlParameter[] = []
  readonly #conditions: string[] = []

  /** Adds a parameter and returns its place in the text, cast: `$3::text`. */
  add(value: SqlParameter, type: string): string {
    this.#parameters.push(value)
    return `$${this.#parameters.length}::${type}`
  }

  /** Adds an instant given in milliseconds since the epoch. */
  addInstant(instantMs: number): string {
    return this.add(instantText(instantMs), 'timestamptz')
  }

  /** Adds a list of texts. */
  addList(values: readonly string[]): string {
    return this.add(listText(values), 'text[]')
  }

  where(condition: string): this {
    this.#conditions.push(condition)
    return this
  }

  /** `WHERE …` of every condition joined with AND, or nothing. */
  get whereClause(): string {
    return this.#conditions.length === 0 ? '' : `WHERE ${this.#conditions.join(' AND ')}`
  }

  build(text: string): SqlStatement {
    return { text, parameters: this.#parameters }
  }
}

/** `{"a","b"}`: the array literal of some texts. */
export function listText(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`).join(',')}}`
}

/** RFC 3339 in UTC with milliseconds. */
function instantText(instantMs: number): string {
  return new Date(instantMs).toISOString()
}
