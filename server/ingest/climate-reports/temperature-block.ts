// The TEMPERATURE block of one station's climate summary: label, maximum and minimum. The value is the first token of its line, but
// only inside the OBSERVED column if the table has a heading for it: offices use some two dozen layouts, and where the value is
// blank, the time, the record or the normal would be taken for it.

import { collapse } from './wmo-header.ts'

const TITLE = /^TEMPERATURE ?(?:\(F\))?(?: (?<label>TODAY|YESTERDAY))?$/
const LABEL = /^(?<label>TODAY|YESTERDAY)\b/
const NEXT_BLOCK =
  /^(?:PRECIPITATION|SNOWFALL|SNOW DEPTH|DEGREE DAYS|HEATING|COOLING|WIND|SKY COVER|WEATHER COND|RELATIVE HUM|\.{6,}|&&|\$\$)/
const VALUE_LINE = /^\s*(?<name>MAXIMUM|MINIMUM)(?<rest>\s.*)?$/
const MISSING = /^MM?(?=\s|$)/
const CLOCK_TIME = /^\d{1,2}(?::?\d\d)? ?[AP]M\b/
// R: record set or tied. E: estimated. Written 100R, 31 E, 57(E), 79*.
const VALUE = /^(?<value>-?\d{1,3}(?:\.\d)?) ?(?:\(?[RE*]\)? ?)*(?=\s|$)/

// Wider than any air temperature on record, but narrow enough to exclude two columns that were joined.
const TEMP_F_MIN = -100
const TEMP_F_MAX = 150

/**
 * Reads the block out of a summary's upper-case lines, which begin with the headline. `index` is that of the block's title, or of the
 * line that cannot be read for the reason in `detail`.
 */
export function readTemperatureBlock(lines: readonly string[]) {
  const index = lines.findIndex((line) => TITLE.test(collapse(line)))
  if (index < 0) return { index: 0, detail: 'no temperature block' }
  const length = lines.slice(index + 1).findIndex((line) => NEXT_BLOCK.test(collapse(line)))
  const block = lines.slice(index, length < 0 ? undefined : index + 1 + length)
  const columnEnd = observedColumnEnd(lines)
  const values = new Map<string, number | null>()
  for (const [offset, line] of block.entries()) {
    const fields = VALUE_LINE.exec(line)?.groups
    const name = fields?.['name']
    if (name === undefined || values.has(name)) continue
    const value = readValue(line, fields?.['rest'] ?? '', columnEnd)
    if (typeof value === 'string') return { index: index + offset, detail: value }
    values.set(name, value)
  }
  if (values.size === 0) {
    return { index, detail: 'the temperature block has no maximum and no minimum' }
  }
  return {
    index,
    /** TODAY or YESTERDAY, whichever comes first from here on. */
    label: firstLabel(lines.slice(index)),
    /** Degrees F; null for MM, a blank or no line. */
    highTempF: values.get('MAXIMUM') ?? null,
    lowTempF: values.get('MINIMUM') ?? null,
  }
}

/** The end of the OBSERVED column by the table's heading; the whole line counts if there is no heading. */
function observedColumnEnd(lines: readonly string[]): number {
  const heading = lines.find((line) => /^\s*WEATHER ITEM\b/.test(line))
  const start = heading?.indexOf('OBSERVED') ?? -1
  return start < 0 ? Number.POSITIVE_INFINITY : start + 'OBSERVED'.length
}

/** The value, null for a missing one, or a sentence that says why the text is not a value. `rest` is the line's end. */
function readValue(line: string, rest: string, columnEnd: number): number | null | string {
  const text = rest.trim()
  const column = line.length - rest.trimStart().length
  const isBlank = text === '' || column >= columnEnd || CLOCK_TIME.test(text)
  if (isBlank || MISSING.test(text)) return null
  const tempF = Number(VALUE.exec(text)?.groups?.['value'])
  if (Number.isNaN(tempF)) return `no temperature in ${JSON.stringify(collapse(line).slice(0, 80))}`
  if (tempF < TEMP_F_MIN || tempF > TEMP_F_MAX) return `${tempF} F is no air temperature`
  return Object.is(tempF, -0) ? 0 : tempF
}

function firstLabel(lines: readonly string[]): string | undefined {
  for (const line of lines) {
    const text = collapse(line)
    const fields = TITLE.exec(text)?.groups ?? LABEL.exec(text)?.groups
    if (fields?.['label'] !== undefined) return fields['label']
  }
  return undefined
}
