// Two hundred and fifty malformed or unusual requests, each followed by a request for `/second`: odd characters around and within
// the lines that define where a request ends, odd chunk sizes, odd request lines.

const SECOND = 'GET /second HTTP/1.1\r\nHost: test\r\n\r\n'
const HEAD = 'GET /first HTTP/1.1\r\nHost: test\r\n'
const LENGTH = String(SECOND.length)

const ODD = [' ', '\t', '\v', '\f', '\0', '\x1f', '\x7f', '\x85', '\xa0', '\r', '\n', '\r\n ', '_']
// oxfmt-ignore
const CHUNK_SIZES = [
  '0x0', '0'.repeat(40), '-0', '+0', '0;', '0 ', '0\t', ' 0', '0;ext', '0\0', 'FFFFFFFFFFFFFFFF1',
  '10000000000000000', '0\v', '', 'g', '0\r', '0\n\r\n', '0;"\r\n"',
]
// oxfmt-ignore
const CODINGS = [
  'chunked', 'Chunked', 'chunked;q=1', 'gzip, chunked', 'chunked, chunked', '"chunked"', ',chunked',
  'chunked,', 'x', 'null', '0',
]
// oxfmt-ignore
const REQUEST_LINES = [
  'GET  /first HTTP/1.1', 'GET\t/first HTTP/1.1', 'GET /first  HTTP/1.1', 'GET /first\tHTTP/1.1',
  'GET /first HTTP/1.1 ', ' GET /first HTTP/1.1', 'GET /first HTTP/1.10', 'GET /first HTTP/01.1',
  'GET /first http/1.1', 'GET /fi\0rst HTTP/1.1', 'GET /first', 'GET /first HTTP/1.1\r', 'GET first HTTP/1.1',
  'GET /first HTTP/1.1\n', 'GE\0T /first HTTP/1.1', 'GET /first\r HTTP/1.1', 'GET /first\vHTTP/1.1',
  'GET /first HTTP/1.2', 'GET /first HTTP/0.9', 'GET /first HTTP/1,1', 'GET /first HTTP/1.1 HTTP/1.1',
  'get /first HTTP/1.1',
]
// oxfmt-ignore
const LINES = [
  ':', 'Host', ' Host: test', 'Host test', 'Na me: x', 'Name\0: x', 'N\xe4me: x', '(x): y', 'X: a\x01b',
  'Host:test,other', 'Content-Length: 0;', 'Content-Length: 00', 'Content-Length: 0.0', 'Content-Length: 0e0',
  'Content-Length: \xb2', 'Content-Length: "0"', 'Content-Length: 0 0', 'Content-Length: \t0',
  'Content-Length: 0\r\nContent-Length: +0', 'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings',
  `Expect: 100-continue\r\nContent-Length: ${LENGTH}`,
]

/** The requests by name. */
export function oddRequests(): Map<string, string> {
  const all = new Map<string, string>()
  const add = (name: string, line: string, body = ''): void => {
    all.set(name, `${HEAD}${line}\r\n\r\n${body}${SECOND}`)
  }
  const ends: [name: string, value: string, body: string][] = [
    ['Transfer-Encoding', 'chunked', '0\r\n\r\n'],
    ['Content-Length', LENGTH, ''],
  ]
  for (const odd of ODD.map((text) => [JSON.stringify(text), text] as const)) {
    for (const [name, value, body] of ends) {
      const [told, text] = odd
      add(`${told} before ${name}`, `${text}${name}: ${value}`, body)
      add(`${told} behind ${name}`, `${name}${text}: ${value}`, body)
      add(`${told} within ${name}`, `${name.replace('-', `-${text}`)}: ${value}`, body)
      add(`${told} before the value of ${name}`, `${name}:${text}${value}`, body)
      add(`${told} behind the value of ${name}`, `${name}: ${value}${text}`, body)
      add(`${told} within the value of ${name}`, `${name}: ${value[0]}${text}${value.slice(1)}`, body)
    }
  }
  for (const size of CHUNK_SIZES)
    add(`chunk size ${JSON.stringify(size)}`, 'Transfer-Encoding: chunked', `${size}\r\n\r\n`)
  for (const coding of CODINGS) {
    for (const length of ['', `Content-Length: ${LENGTH}\r\n`, 'Content-Length: 0\r\n'])
      add(`coding ${coding} with ${length}`, `${length}Transfer-Encoding: ${coding}`, '0\r\n\r\n')
  }
  for (const line of LINES) add(`line ${JSON.stringify(line)}`, line)
  for (const line of REQUEST_LINES) all.set(`request ${line}`, `${line}\r\nHost: test\r\n\r\n${SECOND}`)
  return all
}

/**
 * Requests without ambiguity: headers that do not define where a request ends; a length of zero, with white space where it is
 * allowed; an offered protocol that is not used; a method that no endpoint has; white space in a request line that a server may
 * accept (RFC 9112, section 3).
 */
// oxfmt-ignore
export const BEYOND_DOUBT: ReadonlySet<string> = new Set([
  '"_" before Content-Length', '"_" behind Content-Length', '"_" within Content-Length',
  'line "Content-Length: 00"', String.raw`line "Content-Length: \t0"`, 'request get /first HTTP/1.1',
  String.raw`line "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings"`,
  'request GET  /first HTTP/1.1', 'request GET /first  HTTP/1.1',
])

/** uWebSockets.js ends the headers at a line without a name; nginx, HAProxy and Envoy do not forward such a line. */
export const NOT_SEEN = 'line ":"'
