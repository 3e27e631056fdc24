// Loads uWebSockets.js after the settings that it reads while loading, and makes its applications listen.

// oxlint-disable-next-line no-unassigned-import -- it must be loaded before the library
import './uws-settings.ts'
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import * as uWS from 'uWebSockets.js'

export { uWS }

// uSockets' LIBUS_LISTEN_EXCLUSIVE_PORT: exported under another name than in its types, so the value is given here.
const LISTEN_EXCLUSIVE_PORT = 1

/** Port 0 lets the system choose. Resolves to false when the address cannot be bound. */
export async function listen(
  app: TemplatedApp,
  host: string,
  port: number,
): Promise<us_listen_socket | false> {
  return new Promise((resolve) => {
    // Without the exclusive option a second server may bind the same port and take a share of its connections. The types
    // lack this form with a host; the library has it.
    Reflect.apply(app.listen.bind(app), undefined, [host, port, LISTEN_EXCLUSIVE_PORT, resolve])
  })
}
