// The error for anything in a climate report's text that cannot be read.

/** Names the product (its id or, without a readable header, its ordinal in the text) and the line in it, from 1. */
export class ClimateReportError extends Error {
  readonly line: number

  constructor(product: string, line: number, detail: string) {
    super(`climate report ${product}, line ${line}: ${detail}`)
    this.name = 'ClimateReportError'
    this.line = line
  }
}
