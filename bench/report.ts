// The result of a benchmark, and how it is printed: figures beside their goals.

export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** Goals for the value. */
  readonly atMost?: number
  readonly atLeast?: number
}

export interface BenchReport {
  readonly benchmark: string
  readonly size: BenchSize
  readonly figures: readonly Figure[]
  /** Hashes of outputs, by their producer. */
  readonly hashes: Readonly<Record<string, string>>
  /** Facts that the figures do not show, such as what a platform cannot measure. */
  readonly notes: readonly string[]
}

export type BenchSize = 'smoke' | 'full'

export interface Environment {
  readonly node: string
  readonly cpu: string
  readonly cpuCount: number
  readonly memoryGb: number
  readonly platform: string
  readonly commit: string
}

/** A markdown section: one table of figures, then hashes and notes. */
export function reportMarkdown(report: BenchReport): string {
  // At smoke size nothing is warm and everything is short, so goals are meaningless.
  const goal = (figure: Figure) => (report.size === 'full' ? goalText(figure) : '')
  const lines = [
    `### ${report.benchmark} (${report.size})`,
    '',
    '| figure | measured | goal |',
    '|---|---:|---|',
    ...report.figures.map((figure) => `| ${figure.name} | ${valueText(figure)} | ${goal(figure)} |`),
    '',
    ...Object.entries(report.hashes).map(([name, hash]) => `- sha256 of ${name}: \`${hash.slice(0, 16)}\``),
    ...report.notes.map((note) => `- ${note}`),
    '',
  ]
  return lines.join('\n')
}

export function environmentMarkdown(environment: Environment): string {
  const { node, cpu, cpuCount, memoryGb, platform, commit } = environment
  return `Node ${node}, ${cpuCount} × ${cpu}, ${memoryGb} GB, ${platform}, commit ${commit}\n`
}

function valueText({ value, unit }: Figure): string {
  return unit === '' ? numberText(value) : `${numberText(value)} ${unit}`
}

function goalText({ value, unit, atMost, atLeast }: Figure): string {
  const isMissed = (atMost !== undefined && value > atMost) || (atLeast !== undefined && value < atLeast)
  const mark = isMissed ? ' **missed**' : ''
  const suffix = unit === '' ? '' : ` ${unit}`
  if (atMost !== undefined) return `≤ ${numberText(atMost)}${suffix}${mark}`
  return atLeast === undefined ? '' : `≥ ${numberText(atLeast)}${suffix}${mark}`
}

/** Three significant digits, or a whole number. */
function numberText(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  return String(Number(value.toPrecision(3)))
}
