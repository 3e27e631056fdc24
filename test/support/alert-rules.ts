// Evaluates the forms of Prometheus expressions in operations/alerts.yml over one scrape: `time() - metric`, `metric`, `metric /
// metric`, each with label matchers, compared with a number; and `metric unless metric`.

import { readFileSync } from 'node:fs'

export interface AlertRule {
  readonly name: string
  readonly expression: string
  /** How long the expression must hold. */
  readonly forText: string | undefined
}

interface Sample {
  readonly metric: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const UNLESS = /^(?<metric>[a-z_]+)(?:\{(?<labels>[^}]*)\})? unless (?<divisor>[a-z_]+)$/
const EXPRESSION =
  /^(?<time>time\(\) - )?(?<metric>[a-z_]+)(?:\{(?<labels>[^}]*)\})?(?: \/ (?<divisor>[a-z_]+))? (?<operator>==|>|<) (?<bound>[\d.]+)$/

export function readAlertRules(path: string): AlertRule[] {
  const blocks = readFileSync(path, 'utf8')
    .split(/^ +- alert: /m)
    .slice(1)
  return blocks.map((block) => {
    const [name = ''] = block.split('\n')
    const expression = /^ +expr: (.+)$/m.exec(block)?.[1]
    if (expression === undefined) throw new Error(`${name} has no expression`)
    return { name, expression, forText: /^ +for: (.+)$/m.exec(block)?.[1] }
  })
}

/** The metrics in an expression. */
export function metricsOf(expression: string): string[] {
  const { metric, divisor } = partsOf(expression)
  return [metric, divisor].filter((name) => name !== undefined)
}

/** The labels of every series for which the expression holds. */
export function firing(expression: string, text: string, nowS: number): Readonly<Record<string, string>>[] {
  const { time, metric, labels, divisor, operator, bound } = partsOf(expression)
  const wanted = labelsOf(labels ?? '')
  const samples = samplesOf(text)
  return samples
    .filter((sample) => sample.metric === metric)
    .filter((sample) => Object.entries(wanted).every(([name, value]) => sample.labels[name] === value))
    .filter((sample) => {
      if (operator === undefined) return !isThere(samples, divisor ?? '', sample)
      const value = time === undefined ? sample.value : nowS - sample.value
      const right = divisor === undefined ? 1 : matching(samples, divisor, sample).value
      return compare(value / right, operator, Number(bound))
    })
    .map((sample) => sample.labels)
}

function partsOf(expression: string): Record<string, string | undefined> {
  const parts = (UNLESS.exec(expression) ?? EXPRESSION.exec(expression))?.groups
  if (parts === undefined) throw new Error(`an expression of a form that is not known: ${expression}`)
  return parts
}

function isThere(samples: readonly Sample[], metric: string, { labels }: Sample): boolean {
  const key = JSON.stringify(labels)
  return samples.some((sample) => sample.metric === metric && JSON.stringify(sample.labels) === key)
}

function matching(samples: readonly Sample[], metric: string, { labels }: Sample): Sample {
  const key = JSON.stringify(labels)
  const found = samples.find((sample) => sample.metric === metric && JSON.stringify(sample.labels) === key)
  if (found === undefined) throw new Error(`no ${metric} with ${key}`)
  return found
}

function compare(value: number, operator: string, bound: number): boolean {
  if (operator === '==') return value === bound
  return operator === '>' ? value > bound : value < bound
}

function samplesOf(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const match = /^([a-z_]+)(?:\{([^}]*)\})? (\S+)$/.exec(line)
    if (match === null) return []
    const [, metric = '', labels = '', value = ''] = match
    return [{ metric, labels: labelsOf(labels), value: Number(value) }]
  })
}

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]),
  )
}
