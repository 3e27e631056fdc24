// Writes texts of climate reports in the layouts that offices use, so that tests can state a case in one line. These are synthetic;
// the real texts are among the recordings.

export interface SummaryText {
  readonly name: string
  /** As in the headline, for example `AUGUST 29 2026`. */
  readonly date: string
  readonly headlineTail?: string
  readonly validAsOf?: string
  readonly label?: string | null
  /** The text after the word MAXIMUM, for example `         90   3:25 PM  95    1952  90`; null for no line. */
  readonly maximum?: string | null
  readonly minimum?: string | null
  readonly heading?: string
  readonly temperatureTitle?: string
}

export interface ProductText {
  readonly header?: string
  readonly pil?: string
  readonly title?: string
  readonly issued?: string | null
  readonly summaries: readonly SummaryText[]
  readonly tail?: string
}

export const HEADING = 'WEATHER ITEM   OBSERVED TIME   RECORD YEAR NORMAL DEPARTURE LAST      '

export function productText(product: ProductText): string {
  const {
    header = 'CDUS42 KMFL 300824',
    pil = 'CLIMIA',
    title = 'CLIMATE REPORT ',
    issued = '424 AM EDT SUN AUG 30 2026',
    tail = '$$',
  } = product
  const head = ['884 ', header, pil, '', title, 'NATIONAL WEATHER SERVICE SOMEWHERE', issued ?? '', '']
  return [...head, ...product.summaries.flatMap(summaryLines), tail, ''].join('\n')
}

function summaryLines(summary: SummaryText): string[] {
  const {
    label = 'YESTERDAY',
    maximum = '         90   3:25 PM  95    1952  90      0       93        ',
    minimum = '         76   8:12 AM  69    1912  77     -1       77        ',
    heading = HEADING,
    temperatureTitle = 'TEMPERATURE (F)                      ',
  } = summary
  return [
    '...................................',
    '',
    `...THE ${summary.name} CLIMATE SUMMARY FOR ${summary.date}${summary.headlineTail ?? ''}...`,
    ...(summary.validAsOf === undefined ? [] : [summary.validAsOf]),
    '',
    'CLIMATE NORMAL PERIOD: 1991 TO 2020',
    heading,
    '                VALUE   (LST)  VALUE       VALUE  FROM      YEAR     ',
    '...................................................................',
    temperatureTitle,
    ...(label === null ? [] : [` ${label}          `]),
    ...(maximum === null ? [] : [`  MAXIMUM${maximum}`, '                                      1946']),
    ...(minimum === null ? [] : [`  MINIMUM${minimum}`]),
    '  AVERAGE         83                        84     -1       85     ',
    '',
    'PRECIPITATION (IN)',
    `  ${label ?? ''}        0.62          7.26 1932   0.34   0.28     0.07     `,
    '',
    `THE ${summary.name} CLIMATE NORMALS FOR TODAY`,
    ' MAXIMUM TEMPERATURE (F)   92        97      1951',
    ' MINIMUM TEMPERATURE (F)   79        68      1942',
    '',
  ]
}

/** In the archive's wrapping. */
export function wrapped(...products: readonly string[]): string {
  return products.map((text) => `\u0001\n${text}\n\u0003\n`).join('')
}
