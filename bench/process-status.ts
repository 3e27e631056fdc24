// What the kernel says about another process: the memory it holds and the processor time it has used. Linux only:
// elsewhere the answers are undefined.

import { readFile } from 'node:fs/promises'

export interface ProcessMemory {
  readonly residentBytes: number
  /** The most that was ever resident. */
  readonly peakBytes: number
}

export async function readProcessMemory(pid: number): Promise<ProcessMemory | undefined> {
  if (process.platform !== 'linux') return undefined
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return { residentBytes: kilobytesOf(status, 'VmRSS'), peakBytes: kilobytesOf(status, 'VmHWM') }
}

/** Linux counts processor time in hundredths of a second, whatever its clock really does. */
const MS_PER_CLOCK_TICK = 10

/** Milliseconds of processor time that all threads of the process have used so far. */
export async function readProcessCpuMs(pid: number): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The second field is the program's name, which may hold spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_CLOCK_TICK
}

function kilobytesOf(status: string, field: string): number {
  const text = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]
  if (text === undefined) throw new Error(`the process status has no ${field}`)
  return Number(text) * 1024
}
