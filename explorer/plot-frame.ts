// The layout of a view: heading, note, the plot, the panel beside it, and the area below for the time bar and the tables.

import { element } from './element.ts'

export interface PlotFrame {
  readonly plot: HTMLElement
  readonly side: HTMLElement
  readonly below: HTMLElement
}

/** @param heading what is shown, also for screen readers */
export function plotFrame(host: HTMLElement, heading: string, note: string): PlotFrame {
  const plot = element('div', {
    class: 'plot',
    role: 'img',
    'aria-label': `${heading}. The table below has the same values.`,
  })
  const side = element('div', { class: 'side' })
  const below = element('div', { class: 'below' })
  host.append(
    element('h2', {}, heading),
    element('p', { class: 'note' }, note),
    element('div', { class: 'plot-and-side' }, element('div', { class: 'plot-column' }, plot, below), side),
  )
  return { plot, side, below }
}
