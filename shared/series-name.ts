// What may name a series: it becomes a directory of the lake, and stands in requests.

// Letters, digits, dot, dash, underscore; never `.` or `..`, never hidden.
const SERIES_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/
const SERIES_NAME_CHARACTERS_MAX = 128

/** Whether a series name can stand in a lake path (and so in a request). */
export function isSeriesName(series: string): boolean {
  return series.length <= SERIES_NAME_CHARACTERS_MAX && SERIES_NAME.test(series)
}

/** Why a text is no series name, to follow its quotation in a sentence; `undefined` for one that is. */
export function seriesNameProblem(series: string): string | undefined {
  if (series.length > SERIES_NAME_CHARACTERS_MAX)
    return `has ${series.length} characters; a series has at most ${SERIES_NAME_CHARACTERS_MAX}`
  if (SERIES_NAME.test(series)) return undefined
  return 'is no series: those have letters, digits, dot, dash and underscore, and begin with neither dot nor dash'
}

/** The series a market ticker belongs to: the part before its first dash. */
export function seriesOfTicker(ticker: string): string {
  const dash = ticker.indexOf('-')
  return dash === -1 ? ticker : ticker.slice(0, dash)
}
