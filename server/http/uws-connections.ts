// The connection limits over uWebSockets.js.

import type { HttpResponse, TemplatedApp } from 'uWebSockets.js'
import { ConnectionShares, connectionLimits, establishedConnections } from './connection-shares.ts'
import type { HttpServerOptions } from './exchange.ts'

export function peerAddressOf(response: HttpResponse): string {
  return Buffer.from(response.getRemoteAddressAsText()).toString('latin1')
}

/**
 * Closes connections beyond the limits as soon as they are accepted. The library reports that a connection was closed, but
 * not which one. So the kernel counts the connections of an address that may exceed its share.
 */
export function limitConnections(app: TemplatedApp, options: HttpServerOptions, portOf: () => number): void {
  const { max, clientMax } = connectionLimits(options)
  const shares = new ConnectionShares(clientMax, () => establishedConnections(portOf()))
  let open = 0
  app.filter((response, change) => {
    open += change
    if (change > 0 && (open > max || !shares.open(peerAddressOf(response)))) response.close()
  })
}
