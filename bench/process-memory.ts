// What the kernel says a process holds in memory. Linux only: elsewhere the answer is undefined.

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

function kilobytesOf(status: string, field: string): number {
  const text = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]
  if (text === undefined) throw new Error(`the process status has no ${field}`)
  return Number(text) * 1024
}
