// Quantities that are computed from a report's values.

import { MPH_PER_KNOT, roundTo } from '../../../shared/unit-factors.ts'

/**
 * Relative humidity in percent, one decimal, at most 100, from °C. Magnus form with the coefficients of Alduchov and
 * Eskridge, "Improved Magnus Form Approximation of Saturation Vapor Pressure", Journal of Applied Meteorology 35 (1996),
 * 601–609: e(T) = 6.1094 exp(17.625 T / (T + 243.04)). Null when a value is missing or outside the formula's domain.
 */
export function relativeHumidity(temperatureC: number | null, dewpointC: number | null): number | null {
  if (temperatureC === null || dewpointC === null) return null
  // The fit was made for −40 … 50 °C. Real air may be outside it, but is never near the pole at −243.04 °C.
  if (Math.min(temperatureC, dewpointC) < -100) return null
  const percent = 100 * Math.exp(magnusExponent(dewpointC) - magnusExponent(temperatureC))
  return Math.min(100, roundTo(percent, 1))
}

function magnusExponent(celsius: number): number {
  return (17.625 * celsius) / (celsius + 243.04)
}

/**
 * Apparent temperature, °F with one decimal: wind chill at 50 °F and below, heat index above 80 °F, else the temperature ("Apparent
 * Temperature", National Digital Forecast Database definitions, https://digital.weather.gov/staticpages/definitions.php). Null if a
 * value that the formula needs is missing.
 */
export function feelsLikeF(
  temperatureF: number | null,
  humidityPercent: number | null,
  windSpeedKt: number | null,
): number | null {
  if (temperatureF === null) return null
  if (temperatureF <= 50)
    return windSpeedKt === null ? null : windChillF(temperatureF, windSpeedKt * MPH_PER_KNOT)
  if (temperatureF > 80) return humidityPercent === null ? null : heatIndexF(temperatureF, humidityPercent)
  return roundTo(temperatureF, 1)
}

/**
 * Wind chill, °F: 35.74 + 0.6215 T − 35.75 V^0.16 + 0.4275 T V^0.16 with T in °F and V in mph, for T ≤ 50 and V > 3;
 * in less wind the temperature itself. "NWS Windchill Chart", https://www.weather.gov/safety/cold-wind-chill-chart.
 */
function windChillF(temperatureF: number, windMph: number): number {
  if (windMph <= 3) return roundTo(temperatureF, 1)
  const power = windMph ** 0.16
  return roundTo(35.74 + 0.6215 * temperatureF - 35.75 * power + 0.4275 * temperatureF * power, 1)
}

/**
 * Heat index, °F. The simple formula (Steadman) stands when it gives less than 80 °F; else the regression of Rothfusz
 * (NWS Technical Attachment SR 90-23, 1990) with its two adjustments. "The Heat Index Equation", NWS Weather Prediction
 * Center, https://www.wpc.ncep.noaa.gov/html/heatindex_equation.shtml.
 */
function heatIndexF(temperatureF: number, humidityPercent: number): number {
  const t = temperatureF
  const rh = humidityPercent
  const simple = 0.5 * (t + 61 + (t - 68) * 1.2 + rh * 0.094)
  if (simple < 80) return roundTo(simple, 1)
  const regression =
    -42.379 +
    2.04901523 * t +
    10.14333127 * rh -
    0.22475541 * t * rh -
    0.00683783 * t * t -
    0.05481717 * rh * rh +
    0.00122874 * t * t * rh +
    0.00085282 * t * rh * rh -
    0.00000199 * t * t * rh * rh
  return roundTo(regression + heatIndexAdjustment(t, rh), 1)
}

function heatIndexAdjustment(t: number, rh: number): number {
  if (rh < 13 && t >= 80 && t <= 112) return -((13 - rh) / 4) * Math.sqrt((17 - Math.abs(t - 95)) / 17)
  if (rh > 85 && t >= 80 && t <= 87) return ((rh - 85) / 10) * ((87 - t) / 5)
  return 0
}
