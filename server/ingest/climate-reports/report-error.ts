// The error for anything in a climate report's text that cannot be read.

/**
 * Why a product or a report in it was not taken.
 * - `truncated`: a product that begins with SOH has no ETX.
 * - `too_long`: longer than any climate report; damage or another kind of file.
 * - `no_header`: no WMO header line or no product line.
 * - `other_product`: a header of another product than a daily climate report.
 * - `test_product`: an office's test message.
 * - `no_headline`, `bad_headline`: no line "…THE … CLIMATE SUMMARY FOR …", or one that cannot be read.
 * - `bad_date`: a date that does not exist, or that does not fit the issue time.
 * - `no_temperature`: no temperature block, or one without a maximum and a minimum line.
 * - `no_label`: neither TODAY nor YESTERDAY nor VALID AS OF tells the kind.
 * - `bad_value`: something in the value's column that is no temperature and no missing mark.
 */
export type ReportErrorCode =
  | 'truncated'
  | 'too_long'
  | 'no_header'
  | 'other_product'
  | 'test_product'
  | 'no_headline'
  | 'bad_headline'
  | 'bad_date'
  | 'no_temperature'
  | 'no_label'
  | 'bad_value'

/** Names the product (its id or, without a readable header, its ordinal in the text) and the line in it, from 1. */
export class ClimateReportError extends Error {
  readonly code: ReportErrorCode
  readonly product: string
  readonly line: number

  constructor(code: ReportErrorCode, product: string, line: number, detail: string) {
    super(`climate report ${product}, line ${line}: ${detail}`)
    this.name = 'ClimateReportError'
    this.code = code
    this.product = product
    this.line = line
  }
}
