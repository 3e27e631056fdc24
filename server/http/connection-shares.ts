// Limits open connections, in total and for each address: thousands of idle connections from one address must not keep
// other clients out.

import { readFileSync } from 'node:fs'
import { clientAddress } from './client-address.ts'
import { DESCRIPTORS_RESERVED, descriptorsMax } from './descriptor-limit.ts'
import type { HttpServerOptions } from './exchange.ts'

/** The share of all connections that one address may have by default. */
const SHARE = 1 / 10
/** The kernel's count is valid this long, or until this part of a client's share was opened since. */
const COUNT_VALID_MS = 1_000
const OPENED_SHARE_MAX = 1 / 10
/** Addresses that are remembered between two counts of the kernel. */
const ADDRESSES_MAX = 100_000
/** A line of /proc/net/tcp: local and remote address and port, in hexadecimal; 01 is an established connection. */
const ESTABLISHED = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) ([0-9A-F]+):[0-9A-F]{4} 01 /gm

/** The limits on open connections of all clients, and of one address. */
export function connectionLimits(options: HttpServerOptions): { max: number; clientMax: number } {
  const affordable = descriptorsMax() - DESCRIPTORS_RESERVED
  const max = Math.min(options.connectionsMax ?? affordable, affordable)
  return { max, clientMax: options.clientConnectionsMax ?? Math.max(1, Math.floor(max * SHARE)) }
}

/** Open connections by address. */
type Counts = Map<string, number>

/**
 * Counts the connections of each address.
 * @param recount counts the open connections, for a library that does not report which connection was closed; it returns
 * undefined where the system cannot count them: then there are no shares
 */
export function connectionShares(clientMax: number, recount?: () => Counts | undefined) {
  let counts: Counts = new Map()
  let countedMs = -Infinity
  let openedCount = 0
  return {
    /** Counts a new connection; false when its address has used its share. */
    open(peerAddress: string): boolean {
      if (clientMax === Infinity) return true
      const address = clientAddress(peerAddress, '', 0)
      let count = (counts.get(address) ?? 0) + 1
      if (recount !== undefined && (count > clientMax || counts.size >= ADDRESSES_MAX)) {
        const isOld = performance.now() - countedMs >= COUNT_VALID_MS
        if (isOld || openedCount >= clientMax * OPENED_SHARE_MAX) {
          counts = recount() ?? new Map()
          countedMs = performance.now()
          openedCount = 0
          // The kernel's count includes the new connection.
          count = counts.get(address) ?? 1
        } else if (count - 1 === clientMax) {
          // The kernel's count included connections that were not accepted yet.
          count -= 1
        }
      }
      if (count > clientMax) return false
      counts.set(address, count)
      openedCount += 1
      return true
    },
    /** Removes a closed connection from the counts. */
    close(peerAddress: string): void {
      const address = clientAddress(peerAddress, '', 0)
      const count = (counts.get(address) ?? 0) - 1
      if (count > 0) counts.set(address, count)
      else counts.delete(address)
    },
  }
}

/** The connections of a listening port by address, as the kernel lists them; undefined except on Linux. */
export function establishedConnections(port: number): Counts | undefined {
  const counts: Counts = new Map()
  for (const file of ['tcp', 'tcp6']) {
    let text = ''
    try {
      text = readFileSync(`/proc/self/net/${file}`, 'latin1')
    } catch {
      if (file === 'tcp') return undefined
    }
    for (const [, localPort = '', remote = ''] of text.matchAll(ESTABLISHED)) {
      if (Number.parseInt(localPort, 16) !== port) continue
      const address = clientAddress(addressOf(remote), '', 0)
      counts.set(address, (counts.get(address) ?? 0) + 1)
    }
  }
  return counts
}

/** An address of 32-bit words in the byte order of the processor, which is little-endian. */
function addressOf(hex: string): string {
  const bytes = Buffer.from(hex, 'hex').swap32()
  if (bytes.length === 4) return bytes.join('.')
  return Array.from({ length: 8 }, (_, group) => bytes.readUInt16BE(2 * group).toString(16)).join(':')
}
