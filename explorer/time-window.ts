// The span of time that a plot shows, in ms since the epoch. `toMs` is exclusive.

export interface TimeWindow {
  readonly fromMs: number
  readonly toMs: number
}

/** A window of `spanMs` as near to `fromMs` as the bounds allow. */
function fitted(fromMs: number, spanMs: number, bounds: TimeWindow): TimeWindow {
  const span = Math.min(spanMs, bounds.toMs - bounds.fromMs)
  const from = Math.min(Math.max(fromMs, bounds.fromMs), bounds.toMs - span)
  return { fromMs: from, toMs: from + span }
}

/** @param factor below 1 zooms in; the instant `aroundMs` stays where it is */
export function zoomed(
  window: TimeWindow,
  factor: number,
  aroundMs: number,
  { bounds, shortestMs }: { readonly bounds: TimeWindow; readonly shortestMs: number },
): TimeWindow {
  const span = window.toMs - window.fromMs
  const newSpan = Math.max(shortestMs, span * factor)
  const share = (aroundMs - window.fromMs) / span
  return fitted(aroundMs - share * newSpan, newSpan, bounds)
}

/** @param share of the window's own span, negative to the left */
export function panned(window: TimeWindow, share: number, bounds: TimeWindow): TimeWindow {
  const span = window.toMs - window.fromMs
  return fitted(window.fromMs + share * span, span, bounds)
}

const AXIS_STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200, 86_400,
] as const

/** The round instants to label on a time axis, about `count` at most. */
export function axisTicks({ fromMs, toMs }: TimeWindow, count: number): number[] {
  const spanS = (toMs - fromMs) / 1000
  const stepMs = 1000 * (AXIS_STEPS_S.find((step) => spanS / step <= count) ?? 86_400)
  const ticks: number[] = []
  for (let ms = Math.ceil(fromMs / stepMs) * stepMs; ms <= toMs; ms += stepMs) ticks.push(ms)
  return ticks
}
