// The names that a series may have. A name becomes a directory of the lake, and is used in requests.

// Letters, digits, dot, dash, underscore; never `.` or `..`, never hidden.
const SERIES_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/
const SERIES_NAME_CHARACTERS_MAX = 128

/** Whether a series name is valid in a lake path, and so in a request. */
export function isSeriesName(series: string): boolean {
  return series.length <= SERIES_NAME_CHARACTERS_MAX && SERIES_NAME.test(series)
}

/** Why a text is not a series name, as the rest of a sentence that begins with the text; `undefined` for a valid name. */
export function seriesNameProblem(series: string): string | undefined {
  if (series.length > SERIES_NAME_CHARACTERS_MAX)
    return `has ${series.length} characters; a series has at most ${SERIES_NAME_CHARACTERS_MAX}`
  if (SERIES_NAME.test(series)) return undefined
  return 'is no series: those have letters, digits, dot, dash and underscore, and begin with neither dot nor dash'
}

/** The series of a market ticker: the part before its first dash. */
export function seriesOfTicker(ticker: string): string {
  const dash = ticker.indexOf('-')
  return dash === -1 ? ticker : ticker.slice(0, dash)
}
