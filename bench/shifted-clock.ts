// Loaded before a program and before each of its threads (`node --import`): its wall clock goes BENCH_CLOCK_SHIFT_MS
// ahead of the machine's, or behind, so that a midnight comes when it is wanted. What the kernel stamps (files) and
// what is measured (performance.now) is as it was.

const shiftMs = Number(process.env['BENCH_CLOCK_SHIFT_MS'] ?? 0)
if (!Number.isSafeInteger(shiftMs)) throw new Error('BENCH_CLOCK_SHIFT_MS is no whole number')
const now = Date.now.bind(Date)
Date.now = () => now() + shiftMs
