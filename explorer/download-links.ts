// The rows of a request as files. Without an API key they are plain links. A link cannot carry a key; with a key, the page
// reads the bytes itself and hands them to the browser as a file.

import { answerOf, type ApiRequest, formatsOf, urlOf } from './api-request.ts'
import { element } from './element.ts'
import type { Session } from './session.ts'

/** The server's limit of rows in a json response of order books. */
const JSON_ROWS_MAX = 50_000

interface ErrorDisplay {
  showError(error: unknown): void
}

async function saveWithKey(
  session: Session,
  request: ApiRequest,
  format: string,
  name: string,
): Promise<void> {
  const hasFormats = formatsOf(request.method).length > 1
  const asked = hasFormats ? { ...request, parameters: { ...request.parameters, format } } : request
  const parts: Uint8Array<ArrayBuffer>[] = []
  for await (const chunk of answerOf(session.client, asked).bytes()) parts.push(Uint8Array.from(chunk))
  const url = URL.createObjectURL(new Blob(parts))
  element('a', { href: url, download: name }).click()
  URL.revokeObjectURL(url)
}

/** @param rows the number of rows read so far */
export function downloadLinks(
  session: Session,
  request: ApiRequest,
  rows: number,
  display: ErrorDisplay,
): HTMLElement[] {
  const formats = formatsOf(request.method).filter((format) => format !== 'json' || rows <= JSON_ROWS_MAX)
  return formats.map((format) => {
    const name = `${request.method}.${format}`
    const link = element('a', { href: urlOf(session, request, format), download: name }, format)
    // /health needs no key.
    if (session.needsKey && request.method !== 'health')
      link.addEventListener('click', (event) => {
        event.preventDefault()
        saveWithKey(session, request, format, name).catch((error: unknown) => display.showError(error))
      })
    return link
  })
}
