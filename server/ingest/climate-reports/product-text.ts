// Splits a text of one or many NWS products into products, and a product into lines. The archive wraps every product in SOH … ETX;
// an API response or a file of a single product has no wrapping. This file does not interpret the text.

/** One product's lines: upper case, printable ASCII, tabs expanded to columns of eight. */
export interface ProductText {
  /** Position in the text, from 1. */
  readonly ordinal: number
  readonly lines: readonly string[]
  readonly characters: number
  /** False if the wrapping was opened but not closed: the text was truncated. */
  readonly isWhole: boolean
}

const SOH = '\u0001'
const ETX = '\u0003'
const TAB_COLUMNS = 8

/** The products of a text in order. Blank text between products is skipped. */
export function splitProducts(text: string): ProductText[] {
  const isWrapped = text.includes(SOH)
  const parts = isWrapped ? text.split(SOH) : [text]
  const products: ProductText[] = []
  parts.forEach((part, index) => {
    const isOpened = isWrapped && index > 0
    const end = part.indexOf(ETX)
    const body = end < 0 ? part : part.slice(0, end)
    if (body.trim() === '' && !isOpened) return
    products.push({
      ordinal: products.length + 1,
      lines: linesOf(body),
      characters: body.length,
      isWhole: !isOpened || end >= 0,
    })
  })
  return products
}

// NWS lines end in CR CR LF, the archive rewrites that to LF, and the API sends LF.
function linesOf(body: string): string[] {
  return body.split(/\r*\n|\r+/).map((line) => cleanLine(line))
}

function cleanLine(line: string): string {
  let clean = ''
  for (const character of line) {
    if (character === '\t') clean += ' '.repeat(TAB_COLUMNS - (clean.length % TAB_COLUMNS))
    else clean += character >= ' ' && character <= '~' ? character.toUpperCase() : ' '
  }
  return clean
}
