// The path or query of a request as the log may have it: without the values of names that clients put credentials under,
// however they are encoded, and without any API key of ours, wherever it stands.

/** Names that clients put credentials under, although none is taken from there. */
const SECRET_NAME = /key|token|secret|password|auth/i
/** Shorter texts are no keys. */
const KEY_CHARACTERS_MIN = 8
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
  if (isKey === undefined && !SECRET_NAME.test(plainly(text))) return text
  // The separators are kept: they are the odd pieces.
  const pieces = text.split(/([&/?;,])/)
  return pieces.map((piece) => loggedPiece(piece, isKey)).join('')
}

function loggedPiece(piece: string, isKey: ((text: string) => boolean) | undefined): string {
  const nameEnd = piece.search(/=|%3d/i)
  const name = nameEnd === -1 ? '' : piece.slice(0, nameEnd)
  const value = plainly(nameEnd === -1 ? piece : piece.slice(nameEnd).replace(/^(?:=|%3d)/i, ''))
  if (name !== '' && SECRET_NAME.test(plainly(name))) return `${name}=${HIDDEN}`
  const isHidden = value.length >= KEY_CHARACTERS_MIN && isKey?.(value) === true
  return isHidden ? `${name === '' ? '' : `${name}=`}${HIDDEN}` : piece
}
