// Tables in NCEI's GHCNh format, with the elements that observations use.

import { knownStation } from './stations.ts'

const OKC = knownStation('OKC')

// oxfmt-ignore
export const ELEMENTS = [
  'temperature', 'dew_point_temperature', 'sea_level_pressure', 'wind_direction', 'wind_speed', 'wind_gust',
  'precipitation', 'snow_depth', 'visibility', 'altimeter', 'sky_cover_summation_1', 'sky_cover_summation_baseht_1',
] as const

/** `value`, `value|quality` or `value|quality|measurement code`; the report type is FM15. */
export type Cells = Partial<Record<(typeof ELEMENTS)[number], string>>

export interface Row {
  readonly cells?: Cells
  readonly text?: string
  readonly reportType?: string
  readonly station?: string
  readonly minute?: string
}

/** A report that matches the default row. */
export const REPORT_TEXT =
  'METAR KOKC 030552Z 21007G15KT 6SM BR FEW110 08/07 A2969 RMK AO2 SLP048 P0000 T00780072 10167 20072'

/** The table of these rows in the format of 2025. */
export function ghcnhTable(rows: readonly Row[]): string {
  const attributes = [
    '',
    '_Measurement_Code',
    '_Quality_Code',
    '_Report_Type',
    '_Source_Code',
    '_Source_Station_ID',
  ]
  const columns = ELEMENTS.flatMap((element) => attributes.map((attribute) => element + attribute))
  const header = [
    'STATION',
    'Station_name',
    'DATE',
    'Year',
    'Month',
    'Day',
    'Hour',
    'Minute',
    ...columns,
    'REM',
  ]
  const lines = rows.map(
    ({ cells = {}, text = '', reportType = 'FM15', station = OKC.ghcnId, minute = '52' }) => {
      const values = ELEMENTS.flatMap((element) => {
        const [value = '', quality = '', measurement = ''] = (cells[element] ?? '').split('|')
        return [value, measurement, quality, value === '' ? '' : reportType, '343', '']
      })
      const remark = text === '' ? '' : `MET10001/02/23 23:52:02 ${text} (TEJ)`
      return [station, 'OKLAHOMA CITY', '', '2023', '01', '03', '05', minute, ...values, remark].join('|')
    },
  )
  return [header.join('|'), ...lines, ''].join('\n')
}
