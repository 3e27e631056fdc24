// Factors between the units of reports, archives and clients. Those of miles, feet, inches and knots are exact by definition; the
// inch of mercury is the conventional one at 0 °C (NIST Special Publication 811, appendix B.8: 3.386389 kPa).

export const METRES_PER_STATUTE_MILE = 1609.344
export const METRES_PER_FOOT = 0.3048
export const MM_PER_INCH = 25.4
export const METRES_PER_SECOND_PER_KNOT = 1852 / 3600
export const MPH_PER_KNOT = 1852 / METRES_PER_STATUTE_MILE
export const HPA_PER_INHG = 33.86389

/** Rounds to `decimals` places; a negative zero becomes zero. */
export function roundTo(value: number, decimals: number): number {
  const factor = 10 ** decimals
  // `+ 0` turns -0 into 0, which JSON would otherwise write as "-0" in some encoders.
  return Math.round(value * factor) / factor + 0
}

/** °F with two decimals, which is exact for tenths of a °C. */
export function fahrenheitOf(celsius: number): number {
  return roundTo(celsius * 1.8 + 32, 2)
}
