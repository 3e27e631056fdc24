// What is wrong with one line of a recording. Where it stands (file and line) is added by whoever reads the lines.

export class BadLineError extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'BadLineError'
  }
}
