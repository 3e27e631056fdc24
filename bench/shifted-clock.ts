// Loaded before a program and before each of its threads (`node --import`): its wall clock goes BENCH_CLOCK_SHIFT_MS
// ahead of the machine's, or behind, so that a midnight comes when it is wanted, and BENCH_CLOCK_SPEED times as fast from
// the instant BENCH_CLOCK_FROM_MS on, so that hours pass in minutes. What the kernel stamps (files), what is measured
// (performance.now) and what is waited for is as it was.

import { benchClock, CLOCK_VARIABLES } from './bench-clock.ts'

const [shiftMs = 0, speed = 1, fromMs = 0] = CLOCK_VARIABLES.map((name) => {
  const text = process.env[name]
  const value = text === undefined ? undefined : Number(text)
  if (value !== undefined && !Number.isSafeInteger(value)) throw new Error(`${name} is no whole number`)
  return value
})
Date.now = benchClock({ shiftMs, speed, fromMs })
