// Parses the places of `--from`, `--to` and similar options: `s3://bucket/prefix` or a directory. It only reads the text;
// sync-target.ts opens the place and loads the S3 client.

export type SyncPlace =
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string }

const S3_URL = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/

/** The place that a text names; undefined for an `s3:` address without a valid bucket. */
export function parsePlace(text: string): SyncPlace | undefined {
  if (!text.startsWith('s3:')) return { kind: 'directory', path: text }
  const match = S3_URL.exec(text)
  if (match?.[1] === undefined) return undefined
  return { kind: 's3', bucket: match[1], prefix: (match[2] ?? '').replaceAll(/^\/+|\/+$/g, '') }
}
