// The address that a request is counted under. Behind proxies it is in X-Forwarded-For, which a client can forge. So only
// as many of its last entries are trusted as there are trusted proxies.

import { isIP } from 'node:net'
import type { Exchange } from './exchange.ts'

const MAPPED_IPV4 = /^(?:::ffff:|(?:0{1,4}:){5}ffff:)(?<ipv4>\d+\.\d+\.\d+\.\d+)$/i
const MAPPED_IPV4_HEX = /^(?:0{1,4}:){5}ffff:(?<high>[0-9a-f]{1,4}):(?<low>[0-9a-f]{1,4})$/i

/** The eight groups of an IPv6 address without `::`, zone or leading zeros. */
function ipv6Groups(address: string): string[] {
  const text = address.split('%', 1)[0] ?? ''
  const [head = '', tail] = text.split('::', 2)
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length)
  const groups = [...before, ...Array.from({ length: zeros }, () => '0'), ...after]
  return groups.map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
}

/**
 * The unit that a rate limit counts: an IPv4 address, or the /64 network of an IPv6 address, the smallest network that
 * providers assign to a customer.
 */
function countedAddress(address: string): string {
  const mapped = MAPPED_IPV4.exec(address)?.groups?.['ipv4']
  if (mapped !== undefined) return mapped
  const hex = MAPPED_IPV4_HEX.exec(address)?.groups
  if (hex !== undefined) {
    const high = Number.parseInt(hex['high'] ?? '', 16)
    const low = Number.parseInt(hex['low'] ?? '', 16)
    return [high >> 8, high & 255, low >> 8, low & 255].join('.')
  }
  if (isIP(address) !== 6) return address
  return `${ipv6Groups(address).slice(0, 4).join(':')}::/64`
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
