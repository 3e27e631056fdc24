// How much a test run does. Tests that repeat themselves (random cases, kills, clients that leave) do it a few times in
// the quick gear, which `npm test` is, and as long as it takes in the full one: `BOOKCAST_TEST_EFFORT=full npm test`. CI runs
// the files that import this one, or what does more for it (.ci/run names those), in the full gear. Both gears run the same tests with the same assertions, but for a few that
// the quick one leaves out, and says so: most benchmarks at smoke size, and variants of what a browser shows.

const EFFORT = process.env['BOOKCAST_TEST_EFFORT'] ?? 'quick'
if (EFFORT !== 'quick' && EFFORT !== 'full')
  throw new Error(`BOOKCAST_TEST_EFFORT is quick or full, not "${EFFORT}"`)

export const IS_FULL_EFFORT = EFFORT === 'full'

/** `skip` of a test that the quick gear leaves out. */
export const inFullGear: false | string = IS_FULL_EFFORT ? false : 'with full effort'

/** How often something is done in this run; `variable` names one of the environment that sets another number. */
export function runs(quick: number, full: number, variable?: string): number {
  const given = variable === undefined ? undefined : process.env[variable]
  if (given !== undefined) return Number(given)
  return IS_FULL_EFFORT ? full : quick
}
