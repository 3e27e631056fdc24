// The content of a recorded line: frames of the exchange.

/** One message of the exchange as JSON gives it. */
export type Frame = Readonly<Record<string, unknown>>

/** A JSON object, as every frame and every part of one is. */
export function isFrame(value: unknown): value is Frame {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const TIME_KEY = /^_?(?:recv|received|receive|recorded|captured|local|ts|time|timestamp)(?:_[a-z]+)*$/

/** Whether a member of a command is a receive time that a recorder added. */
export function isReceiveTime(key: string, value: unknown): boolean {
  return TIME_KEY.test(key) && (typeof value === 'number' || typeof value === 'string')
}
