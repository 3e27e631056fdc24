// The address that a request is counted under. Behind proxies it is in X-Forwarded-For, which a client can forge. So only
// as many of its last entries are trusted as there are trusted proxies.

import { isIP, SocketAddress } from 'node:net'
import type { Exchange } from './exchange.ts'

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/

/**
 * The unit that a rate limit counts: an IPv4 address, or the /64 network of an IPv6 address, the smallest network that
 * providers assign to a customer.
 */
function countedAddress(address: string): string {
  if (isIP(address) !== 6) return address
  const withoutZone = address.split('%', 1)[0] ?? ''
  const canonical = new SocketAddress({ family: 'ipv6', address: withoutZone }).address
  const mapped = MAPPED_IPV4.exec(canonical)?.[1]
  if (mapped !== undefined) return mapped
  const [head = [], tail = []] = canonical
    .split('::')
    .map((groups) => (groups === '' ? [] : groups.split(':')))
  const zeros = Array<string>(8 - head.length - tail.length).fill('0')
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`
}

/**
 * The client of a request.
 * @param trustedProxies how many trusted proxies stand before the server; each appends the address of its peer
 */
export function clientAddress(peerAddress: string, forwardedFor: string, trustedProxies: number): string {
  if (trustedProxies === 0 || forwardedFor === '') return countedAddress(peerAddress)
  const hops = forwardedFor.split(',').map((hop) => hop.trim())
  // Fewer entries than proxies: the client has bypassed some of them.
  const claimed = hops.length < trustedProxies ? undefined : hops[hops.length - trustedProxies]
  return countedAddress(claimed !== undefined && isIP(claimed) !== 0 ? claimed : peerAddress)
}

/** What a request is counted under: the name of its API key, or its address. Valid until the answer is sent. */
export function clientOf(exchange: Exchange, keyName: string | undefined, trustedProxies: number): string {
  if (keyName !== undefined) return `key ${keyName}`
  return `address ${clientAddress(exchange.peerAddress, exchange.header('x-forwarded-for'), trustedProxies)}`
}
