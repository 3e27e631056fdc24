// Numbers and instants as text for the user. Instants are UTC.

const COUNT = new Intl.NumberFormat('en-GB')
const UNITS = ['B', 'kB', 'MB', 'GB'] as const

export function countText(count: number): string {
  return COUNT.format(count)
}

export function bytesText(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1000 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`
}

/** `18:05`, or `18:05:30` if the seconds are not 0. */
export function clockText(ms: number, hasSeconds = ms % 60_000 !== 0): string {
  return new Date(ms).toISOString().slice(11, hasSeconds ? 19 : 16)
}

/** `2026-07-03 18:05:30Z` */
export function instantText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`
}

/** Cents or degrees with at most one decimal; a dash for an unknown value. */
export function valueText(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  return Number.isInteger(value) ? String(value) : value.toFixed(1)
}

/** `5 s`, `12 min`, `3.5 h`, `2.1 d` */
export function durationText(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${(seconds / 3600).toFixed(1)} h`
  return `${(seconds / 86_400).toFixed(1)} d`
}
