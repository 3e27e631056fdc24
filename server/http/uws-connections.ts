// The bounds on connections over uWebSockets.js.

import type { HttpResponse, TemplatedApp } from 'uWebSockets.js'
import { ConnectionShares, connectionLimits, establishedConnections } from './connection-shares.ts'
import type { HttpServerOptions } from './exchange.ts'

export function peerAddressOf(response: HttpResponse): string {
  return Buffer.from(response.getRemoteAddressAsText()).toString('latin1')
}

/**
 * Closes connections beyond the bounds as soon as they are accepted. The library tells that a connection is closed, but
 * not whose: an address that may be above its share is counted by the kernel.
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
