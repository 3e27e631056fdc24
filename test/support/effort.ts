// How much a test run does. Tests with repetitions (random cases, kills, disconnecting clients) repeat a few times with quick
// effort, the default of `npm test`, and as often as necessary with full effort: `BOOKCAST_TEST_EFFORT=full npm test`. `twentieth`
// is full effort with a twentieth of the repetitions. All efforts run the same tests with the same assertions, except for a few
// that quick effort skips with a message: most benchmarks at smoke size, and variants of what a browser shows. `all` is quick
// effort without these skips: CI runs the benchmarks with it.

/** The share of the repetitions of full effort. */
const SHARES = new Map([
  ['quick', 0],
  ['all', 0],
  ['twentieth', 0.05],
  ['full', 1],
])
const EFFORT = process.env['BOOKCAST_TEST_EFFORT'] ?? 'quick'
const found = SHARES.get(EFFORT)
if (found === undefined)
  throw new Error(`BOOKCAST_TEST_EFFORT is one of ${[...SHARES.keys()].join(', ')}, not "${EFFORT}"`)

const SHARE = found
export const IS_FULL_EFFORT = SHARE > 0
/** Whether all repetitions run: then on the disk, whose delays are part of the test. */
export const IS_WHOLE_EFFORT = SHARE === 1

/** `skip` option of a test that quick effort leaves out. */
export const inFullGear: false | string = EFFORT === 'quick' ? 'with full effort' : false

/** Repetitions in this run; `variable` names an environment variable that overrides the number. */
export function runs(quick: number, full: number, variable?: string): number {
  const given = variable === undefined ? undefined : process.env[variable]
  if (given !== undefined) return Number(given)
  return Math.round(quick + (full - quick) * SHARE)
}
