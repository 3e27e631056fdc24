// The two lines that add Lunex. Processes and their threads load this first, by `--import`. It changes the registries of the
// program, and the program itself is not changed.

import { LOB_SOURCES } from '../../../shared/lob-sources.ts'
import { EXCHANGES } from '../../../server/exchanges/registry.ts'
import { LUNEX } from './exchange.ts'
import { LUNEX_NAMES } from './names.ts'

Object.assign(LOB_SOURCES, { lunex: LUNEX_NAMES })
Object.assign(EXCHANGES, { lunex: LUNEX })
