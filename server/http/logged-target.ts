// The method, path or query of a request as the log may have it: without the values of names that clients put credentials
// under, and without any API key of ours, wherever it stands and however it is encoded.

/** Names that clients put credentials under, although none is taken from there. */
const SECRET_NAME = /key|token|secret|password|auth/i
/** Shorter and longer texts are no keys. */
const KEY_CHARACTERS_MIN = 8
const KEY_CHARACTERS_MAX = 512
/** Texts that are looked up for one line; a part beyond that is hidden whole. */
const LOOKUPS_MAX = 2_000
/** Only hashes of keys are known. So what stands between any two of these is looked up: ends, odd characters, encoded bytes. */
const EDGE = /^|$|(?<=[^\w.~-])|(?=[^\w.~-])|(?<=%[\da-f]{2})/gi
/** A client's library, a proxy and the client itself may have encoded it. */
const ENCODINGS_MAX = 3
const HIDDEN = '...'

/** Percent-encoded characters of ASCII decoded; whatever else stands there is left. */
function plainly(text: string): string {
  if (!text.includes('%')) return text
  return text.replaceAll(/%([0-7][0-9a-f])/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )
}

/** @param isKey whether a text is an API key of ours; none where no keys are in use */
export function loggedTarget(text: string, isKey: ((text: string) => boolean) | undefined): string {
  const keyless = isKey === undefined ? text : withoutKeys(text, isKey)
  if (!SECRET_NAME.test(plainly(keyless))) return keyless
  // The separators are kept: they are the odd pieces.
  return keyless
    .split(/([&/?;,])/)
    .map(withoutSecret)
    .join('')
}

function withoutSecret(piece: string): string {
  const nameEnd = piece.search(/=|%3d/i)
  const name = piece.slice(0, Math.max(0, nameEnd))
  return SECRET_NAME.test(plainly(name)) ? `${name}=${HIDDEN}` : piece
}

function withoutKeys(text: string, isKey: (text: string) => boolean): string {
  let lookups = 0
  const hideIn = (part: string): string => {
    const edges = [...part.matchAll(EDGE)].map(({ index }) => index)
    let shown = ''
    let start = 0
    for (const [index, edge] of edges.entries()) {
      if (edge < start) continue
      for (const end of edges.slice(index + 1)) {
        const length = end - edge
        if (length < KEY_CHARACTERS_MIN) continue
        if (length > KEY_CHARACTERS_MAX) break
        if (++lookups > LOOKUPS_MAX) return HIDDEN
        if (!isKey(part.slice(edge, end))) continue
        shown += part.slice(start, edge) + HIDDEN
        start = end
        break
      }
    }
    return shown + part.slice(start)
  }
  const hideEncodedIn = (part: string): string => {
    let shown = part
    for (let level = 0, plain = part; level < ENCODINGS_MAX; level += 1) {
      const hidden = hideIn(plain)
      if (hidden !== plain) shown = hidden
      plain = plainly(hidden)
      if (plain === hidden) break
    }
    return shown
  }
  return text
    .split(/([&?])/)
    .map(hideEncodedIn)
    .join('')
}
