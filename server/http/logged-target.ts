// Prepares the method, path or query of a request for the log: hides the values of parameters whose names suggest credentials,
// and every configured API key, wherever it stands and however it is encoded.

/** Names that clients use for credentials, although the server reads none from there. */
const SECRET_NAME = /key|token|secret|password|auth/i
/** Shorter and longer texts are not keys. */
const KEY_CHARACTERS_MIN = 8
const KEY_CHARACTERS_MAX = 512
/** The limit on key look-ups per log line; a part beyond it is hidden whole. */
const LOOKUPS_MAX = 2_000
/** Only hashes of keys are known, so every text between two of these edges is looked up: ends, odd characters, encoded bytes. */
const EDGE = /^|$|(?<=[^\w.~-])|(?=[^\w.~-])|(?<=%[\da-f]{2})/gi
/** The client, its library and a proxy may each have encoded the text. */
const ENCODINGS_MAX = 3
const HIDDEN = '...'

/** Decodes percent-encoded ASCII characters and leaves everything else. */
function plainly(text: string): string {
  if (!text.includes('%')) return text
  return text.replaceAll(/%([0-7][0-9a-f])/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )
}

/** @param isKey whether a text is a configured API key; undefined without configured keys */
export function loggedTarget(text: string, isKey: ((text: string) => boolean) | undefined): string {
  const keyless = isKey === undefined ? text : withoutKeys(text, isKey)
  if (!SECRET_NAME.test(plainly(keyless))) return keyless
  // The separators are kept: they are the odd elements.
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
