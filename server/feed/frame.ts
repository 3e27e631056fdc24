// The content of a recorded line: frames of the exchange.

/** One message of the exchange as JSON gives it; every part of one is such an object, too. */
export { isJsonObject as isFrame, type JsonObject as Frame } from '../../shared/parsed-json.ts'

const TIME_KEY = /^_?(?:recv|received|receive|recorded|captured|local|ts|time|timestamp)(?:_[a-z]+)*$/

/** Whether a member of a command is a receive time that a recorder added. */
export function isReceiveTime(key: string, value: unknown): boolean {
  return TIME_KEY.test(key) && (typeof value === 'number' || typeof value === 'string')
}
