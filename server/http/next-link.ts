// The Link header of a page that has another one behind it (RFC 8288): the same request with a later offset.

export function nextLink(
  path: string,
  values: Readonly<Record<string, string | number | undefined>>,
  nextOffset: number,
): string {
  const query = Object.entries({ ...values, offset: nextOffset })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return `<${path}?${query.join('&')}>; rel="next"`
}
