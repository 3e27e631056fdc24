/** Copies an element's text. If the browser does not allow it, selects the text and returns false. */
export async function copyText(source: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(source.textContent ?? '')
    return true
  } catch {
    getSelection()?.selectAllChildren(source)
    return false
  }
}
