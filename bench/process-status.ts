// The kernel's figures of another process: its memory and its processor time. Linux only: elsewhere the results are undefined.

import { readFile } from 'node:fs/promises'

export interface ProcessMemory {
  readonly residentBytes: number
  /** Peak resident memory. */
  readonly peakBytes: number
}

export async function readProcessMemory(pid: number): Promise<ProcessMemory | undefined> {
  if (process.platform !== 'linux') return undefined
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return { residentBytes: kilobytesOf(status, 'VmRSS'), peakBytes: kilobytesOf(status, 'VmHWM') }
}

/** Linux reports processor time in hundredths of a second, whatever the kernel's tick is. */
const MS_PER_CLOCK_TICK = 10

/** Processor time of all threads of the process so far, milliseconds. */
export async function readProcessCpuMs(pid: number): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The second field is the program's name, which may contain spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_CLOCK_TICK
}

function kilobytesOf(status: string, field: string): number {
  const text = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]
  if (text === undefined) throw new Error(`the process status has no ${field}`)
  return Number(text) * 1024
}
