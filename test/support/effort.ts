// How much a test run does. Tests that repeat themselves (random cases, kills, clients that leave) do it a few times in
// the quick gear, which `npm test` is, and as long as it takes in the full one: `BOOKCAST_TEST_EFFORT=full npm test`. Between
// them is `twentieth`: the full gear with a twentieth of its repetitions. All gears run the same tests with the same
// assertions, but for a few that the quick one leaves out, and says so: most benchmarks at smoke size, and variants of what a
// browser shows. `all` is the quick gear without that: CI runs the benchmarks with it.

/** The share of the full gear's repetitions. */
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
/** Whether everything is repeated as often as it takes: on the disk, whose waits belong to what is tried. */
export const IS_WHOLE_EFFORT = SHARE === 1

/** `skip` of a test that the quick gear leaves out. */
export const inFullGear: false | string = EFFORT === 'quick' ? 'with full effort' : false

/** How often something is done in this run; `variable` names one of the environment that sets another number. */
export function runs(quick: number, full: number, variable?: string): number {
  const given = variable === undefined ? undefined : process.env[variable]
  if (given !== undefined) return Number(given)
  return Math.round(quick + (full - quick) * SHARE)
}
