// `bookcast prune`: lists order-book files, trades files and raw segments of old dates, and removes them with --apply. It keeps
// files of records, because the relational store depends on them.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { noneThere } from '../../shared/errno.ts'
import { DERIVED_DATASETS, derivedKey, RAW_MANIFEST_NAME, rawKey } from '../../shared/lake-layout.ts'
import { addDays, utcDateOf, utcDateStartMs } from '../../shared/utc-date.ts'
import { BUSY_WAIT_MS_MAX, MergeBusy, type SeriesPlace, withLock } from '../fold/series-lock.ts'
import { removePartition } from '../lake/empty-directories.ts'
import { seriesDates } from '../lake/series-dates.ts'
import { DirectoryStore } from '../sync/directory-store.ts'
import { isEqual, type ObjectHead } from '../sync/object-store.ts'
import { readPlace, S3_OPTIONS } from '../sync/sync-options.ts'
import { openObjectStore } from '../sync/sync-target.ts'
import { asLakeWriteError } from '../lake/lake-write-error.ts'
import { optionCommand } from './option-command.ts'
import { mustBeLake } from './directories.ts'
import { pruneRaw } from './prune-raw.ts'
import { UsageError } from '../options/usage-error.ts'
import {
  describeOptions,
  integerOption,
  type OptionDeclaration,
  optionsOf,
  type ParsedOptions,
} from '../options/options.ts'
import { mib } from './step-progress.ts'

const OPTIONS: readonly OptionDeclaration[] = [
  { name: 'lake', placeholder: '<dir>', description: 'the lake; required' },
  ...optionsOf('prune', [
    {
      name: 'before',
      placeholder: '<date>',
      description: 'remove order-book and trades files of earlier dates (YYYY-MM-DD), at least two days ago',
    },
    {
      name: 'keep-raw',
      placeholder: '<days>',
      description:
        'remove raw segments of dates older than this, at least 2; derived files stay. Default: keep all',
    },
    {
      name: 'kept-in',
      placeholder: '<place>',
      description:
        'only remove order-book files that s3://bucket/prefix or a directory holds with the same bytes',
    },
    { name: 'apply', description: 'remove the files; without it they are only listed' },
  ]),
  ...S3_OPTIONS,
]

const KEPT_DAYS_MAX = 36_500

const HELP = `Usage: bookcast prune --lake <dir> [--before <date>] [--keep-raw <days>] [--kept-in <place>] [--apply]

Lists what is older than the given age; with --apply, removes it. At least one of --before and --keep-raw is required. It leaves
candles and observations alone.

--before removes order-book and trades files from this lake only. A lake that pulls (sync --from, serve --sync-from) would fetch the files
again: prune the lake that pushes.

--keep-raw removes raw segments and keeps the files derived from them. The date is sealed: nothing can be added to
it, and the next push also removes the segments from object storage. Other collectors remove them with their next push. No
sync brings them back. If another lake has added segments that this one lacks, sync removes nothing and reports a conflict, so
push first. A date with segments that are not folded yet stays: run \`bookcast rebuild\` first.

${describeOptions(OPTIONS)}

Exit codes: 0 done, 1 some files stay (each is named with the reason), 2 wrong usage.
`

export const pruneCommand = optionCommand(OPTIONS, HELP, async (options, { stdout, stderr, signal }) => {
  const { lake, before, rawBefore, keptIn, isApplied } = readSettings(options)
  const local = new DirectoryStore(lake)
  // Each manifest of `keptIn` is requested once.
  const manifests = new Map<string, Promise<Head>>()
  let [count, bytes, keptCount] = [0, 0, 0]
  const note = (key: string, keptBecause: string | undefined): void => {
    if (keptBecause === undefined) {
      count += 1
      stdout.write(`${isApplied ? 'removed' : 'would remove'} ${key}\n`)
    } else {
      keptCount += 1
      stderr.write(`stays: ${key} ${keptBecause}\n`)
    }
  }
  try {
    await mustBeLake(options.demand('lake'))
    for await (const { key, series, source, date } of before === undefined ? [] : filesBefore(lake, before)) {
      signal.throwIfAborted()
      const path = join(lake, key)
      const take = async (): Promise<string | undefined> => {
        if (keptIn !== undefined) {
          if ((await areSame(local.head(key, signal), keptIn.head(key, signal))) !== true)
            return `is not the same in ${keptIn.name}`
          // The push of a replacement removes the files that this lake no longer has.
          const manifest = rawKey(source, date, RAW_MANIFEST_NAME)
          if (!manifests.has(manifest)) manifests.set(manifest, keptIn.head(manifest, signal))
          if ((await areSame(local.head(manifest, signal), manifests.get(manifest)!)) === false)
            return `is of a date whose manifest differs in ${keptIn.name}: push first`
        }
        bytes += (await stat(path)).size
        if (isApplied) await removePartition(path)
        return undefined
      }
      // Another process could replace the file between the check and the removal.
      note(key, isApplied ? await alone({ lake, source, series }, take, signal) : await take())
    }
    if (rawBefore !== undefined) {
      for await (const { key, sizeBytes, reason } of pruneRaw(lake, rawBefore, isApplied, signal)) {
        if (reason === undefined) bytes += sizeBytes
        note(key, reason)
      }
    }
  } catch (error) {
    throw asLakeWriteError(error, lake)
  } finally {
    keptIn?.close()
  }
  const done = isApplied ? 'removed' : 'to remove with --apply'
  stdout.write(`${count} files (${mib(bytes)}) ${done}, ${keptCount} stay\n`)
  return keptCount === 0 ? 0 : 1
})

function readSettings(options: ParsedOptions) {
  const lake = options.demand('lake')
  const [before, keepRaw] = [options.get('before'), options.get('keep-raw')]
  // A recorder still writes today's file, and yesterday's may just be finished.
  const today = utcDateOf(Date.now())
  const latest = addDays(today, -2)
  if (before === undefined && keepRaw === undefined)
    throw new UsageError('one of --before <date> and --keep-raw <days> must be given')
  if (before !== undefined && (utcDateStartMs(before.text) === undefined || before.text > latest)) {
    throw new UsageError(`${before.origin} takes a date up to ${latest}, not ${JSON.stringify(before.text)}`)
  }
  const days = keepRaw === undefined ? undefined : integerOption(keepRaw, 2, KEPT_DAYS_MAX)
  const place = options.get('kept-in')
  return {
    lake: lake.text,
    /** Order-book files of earlier dates are removed. */
    before: before?.text,
    /** Raw segments of earlier dates are removed. */
    rawBefore: days === undefined ? undefined : addDays(today, -days),
    keptIn: place === undefined ? undefined : openObjectStore(place.text, readPlace(place, options)),
    isApplied: options.has('apply'),
  }
}

/** Removes a file while no other process writes to its series. Returns the reason if the file stays. */
async function alone(
  place: SeriesPlace,
  take: () => Promise<string | undefined>,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    return await withLock(place, { waitMs: BUSY_WAIT_MS_MAX, signal }, take)
  } catch (error) {
    if (!(error instanceof MergeBusy)) throw error
    return `is locked: ${error.owner} writes to its series`
  }
}

async function* filesBefore(lake: string, before: string) {
  for (const dataset of DERIVED_DATASETS) {
    for await (const { source, series, dates } of seriesDates(lake, dataset)) {
      for (const date of dates) {
        const key = derivedKey(dataset, source, series, date)
        if (date < before && (await stat(join(lake, key)).catch(noneThere)) !== undefined)
          yield { key, source, series, date }
      }
    }
  }
}

type Head = ObjectHead | undefined

/** Whether both sides have an object with the same bytes, by SHA-256 or MD5. Undefined if one side lacks it. */
async function areSame(ownHead: Promise<Head>, otherHead: Promise<Head>): Promise<boolean | undefined> {
  const [own, other] = await Promise.all([ownHead, otherHead])
  return own === undefined || other === undefined ? undefined : isEqual(own, other)
}
