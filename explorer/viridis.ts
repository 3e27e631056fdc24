// The viridis colour map for quantities. Its lightness grows evenly, so that it is readable in greyscale and for colour-blind
// users. Source: a polynomial fit of matplotlib's table (Matt Zucker, CC0), exact to within 1.5 of 255.

export type Rgb = readonly [red: number, green: number, blue: number]

const COEFFICIENTS: readonly Rgb[] = [
  [0.2777273272234177, 0.005407344544966578, 0.3340998053353061],
  [0.1050930431085774, 1.404613529898575, 1.384590162594685],
  [-0.3308618287255563, 0.214847559468213, 0.09509516302823659],
  [-4.634230498983486, -5.799100973351585, -19.33244095627987],
  [6.228269936347081, 14.17993336680509, 56.69055260068105],
  [4.776384997670288, -13.74514537774601, -65.35303263337234],
  [-5.435455855934631, 4.645852612178535, 26.3124352495832],
]

/** The colour at `share`, 0 to 1, each part 0 to 255. */
export function viridis(share: number): Rgb {
  const t = Math.min(1, Math.max(0, share))
  const part = (channel: 0 | 1 | 2): number => {
    const value = COEFFICIENTS.reduceRight((sum, coefficient) => sum * t + coefficient[channel], 0)
    return Math.round(255 * Math.min(1, Math.max(0, value)))
  }
  return [part(0), part(1), part(2)]
}
