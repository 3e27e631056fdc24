// The style sheet's colours for drawing on canvases, and the colours of strikes from cold to hot.

import type { Rgb } from './viridis.ts'

const DARK = matchMedia('(prefers-color-scheme: dark)')

export type ColourName = 'ink' | 'muted' | 'line' | 'surface' | 'accent' | 'rise' | 'fall' | 'hatch'

/** A colour of the current colour scheme (light or dark). */
export function colour(name: ColourName): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
}

export function onSchemeChange(listener: () => void, signal: AbortSignal): void {
  DARK.addEventListener('change', listener, { signal })
}

// Each has a contrast of at least 3:1 with its background.
const LIGHT_STRIKES: readonly Rgb[] = [
  [33, 84, 172],
  [20, 125, 140],
  [72, 128, 40],
  [160, 112, 0],
  [205, 80, 20],
  [165, 15, 70],
]
const DARK_STRIKES: readonly Rgb[] = [
  [110, 160, 255],
  [60, 200, 210],
  [140, 205, 90],
  [235, 190, 60],
  [255, 140, 80],
  [255, 110, 150],
]

/** The colour of the strike at `index` of `count`, coldest first. */
export function strikeColour(index: number, count: number): string {
  const anchors = DARK.matches ? DARK_STRIKES : LIGHT_STRIKES
  const place = count <= 1 ? 0 : (index / (count - 1)) * (anchors.length - 1)
  const low = anchors[Math.floor(place)] ?? [0, 0, 0]
  const high = anchors[Math.ceil(place)] ?? low
  const share = place - Math.floor(place)
  const parts = low.map((part, channel) => Math.round(part + ((high[channel] ?? part) - part) * share))
  return `rgb(${parts.join(', ')})`
}
