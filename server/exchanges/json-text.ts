// Regular expressions for JSON values, to read texts whose members and their order are known.

/** A string without escapes; captures it. */
export const TEXT = String.raw`"([^"\\\x00-\x1f]*)"`
/** A whole number from 0 that JavaScript holds exactly; captures its digits. */
export const INTEGER = String.raw`(0|[1-9]\d{0,14})`
