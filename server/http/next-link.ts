// The Link header of a page that has a next one (RFC 8288): the same request, starting at a later position.

/** `values` are those of the next page; undefined ones are left out. */
export function nextLink(path: string, values: Readonly<Record<string, unknown>>): string {
  const query = Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return `<${path}?${query.join('&')}>; rel="next"`
}
