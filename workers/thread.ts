// What a pool runs in its threads: it loads the task file and passes tasks on. A module that failed to load stays
// failed for the life of its thread, so the thread ends with the failure and the pool starts a fresh one. Loading the
// file while a thread starts would not do: a pool whose threads die at their start is not filled up again.

import { constants, getPriority, setPriority } from 'node:os'
import { workerData } from 'node:worker_threads'
import type { WorkerThreadData } from '../shared/stream-task.ts'

const { taskUrl, niceness }: WorkerThreadData = workerData

// Linux schedules threads, and takes 0 for the calling one. Elsewhere the same call would slow down the whole process.
if (process.platform === 'linux') {
  setPriority(0, Math.min(getPriority(0) + niceness, constants.priority.PRIORITY_LOW))
}

type TaskFile = { readonly default: (task: unknown) => Promise<void> }

async function loadTaskFile(): Promise<TaskFile> {
  try {
    const taskFile: TaskFile = await import(taskUrl)
    return taskFile
  } catch (error) {
    setImmediate(() => {
      throw error
    })
    // The thread is about to end: the task is answered by that.
    return new Promise(() => {})
  }
}

export default async function runInThread(task: unknown): Promise<void> {
  const taskFile = await loadTaskFile()
  await taskFile.default(task)
}
