// Parses gauges and counters in the Prometheus text format.

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter))
}

/** All samples of a text; other lines are skipped. */
export function parseSamples(text: string): Sample[] {
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = LINE.exec(line) ?? []
    if (name === undefined) continue
    const pairs = [...labels.matchAll(LABEL)].map(([, key = '', label = '']) => [key, unescaped(label)])
    samples.push({ name, labels: Object.fromEntries(pairs), value: Number(value) })
  }
  return samples
}
