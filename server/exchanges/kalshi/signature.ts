// Kalshi's request signature: RSA-PSS with SHA-256 (salt as long as the digest) over time, method and path without query. The key
// and its id come from the environment or a file. They must not reach a log, an error message or the lake.

import { constants, createPrivateKey, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

export type KalshiCredentials = ReturnType<typeof kalshiCredentials>

/** Throws an error that does not repeat the text if it is not a private RSA key in PEM form. */
export function kalshiCredentials(keyId: string, pem: string) {
  let privateKey: KeyObject | undefined
  try {
    privateKey = createPrivateKey(pem)
  } catch {
    // The parser's message may quote the text.
  }
  if (privateKey?.asymmetricKeyType !== 'rsa') {
    throw new Error('the Kalshi private key is no RSA key in PEM form')
  }
  return { keyId, privateKey }
}

/** The headers of a request made at `nowMs`. `url` may have a query, which is not signed. */
export function kalshiHeaders(
  { keyId, privateKey }: KalshiCredentials,
  method: string,
  url: string,
  nowMs: number,
): Record<string, string> {
  const time = String(nowMs)
  const text = `${time}${method}${new URL(url).pathname}`
  const signature = sign('sha256', Buffer.from(text), {
    key: privateKey,
    padding: constants.RSA_PKCS1_PSS_PADDING,
    saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
  })
  return {
    'KALSHI-ACCESS-KEY': keyId,
    'KALSHI-ACCESS-TIMESTAMP': time,
    'KALSHI-ACCESS-SIGNATURE': signature.toString('base64'),
  }
}
