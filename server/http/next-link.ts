// The Link header of a page that has another one behind it (RFC 8288): the same request from a later place on.

/** `values` are those of the next page; what is undefined is left out. */
export function nextLink(path: string, values: Readonly<Record<string, unknown>>): string {
  const query = Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return `<${path}?${query.join('&')}>; rel="next"`
}
