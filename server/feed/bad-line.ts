// The error in one line of a recording. The reader of the lines adds its place (file and line).

export class BadLineError extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'BadLineError'
  }
}

/** A value as an error message shows it: short, and on one line. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
