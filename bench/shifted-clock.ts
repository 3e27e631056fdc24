// Loaded before a program and before each of its threads (`node --import`). Its wall clock is BENCH_CLOCK_SHIFT_MS ahead of the
// machine's, or behind, so that midnight comes when it is needed; and BENCH_CLOCK_SPEED times as fast after the instant
// BENCH_CLOCK_FROM_MS, so that hours take minutes. File times, performance.now and timers are not changed.

import { benchClock, CLOCK_VARIABLES } from './bench-clock.ts'

const [shiftMs = 0, speed = 1, fromMs = 0] = CLOCK_VARIABLES.map((name) => {
  const text = process.env[name]
  const value = text === undefined ? undefined : Number(text)
  if (value !== undefined && !Number.isSafeInteger(value)) throw new Error(`${name} is no whole number`)
  return value
})
Date.now = benchClock({ shiftMs, speed, fromMs })
