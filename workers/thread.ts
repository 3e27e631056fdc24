// The entry point of a pool's threads: it loads the task file and passes tasks to it. A module that fails to load stays failed
// for the life of its thread, so the thread throws and the pool starts a new one. The file is not loaded when the thread starts,
// because a pool does not replace threads that die at their start.

import { constants, getPriority, setPriority } from 'node:os'
import { workerData } from 'node:worker_threads'
import type { WorkerThreadData } from '../shared/stream-task.ts'

const { taskUrl, niceness }: WorkerThreadData = workerData

// On Linux, pid 0 sets the priority of the calling thread. On other systems it would set that of the whole process.
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
    // The end of the thread fails the task.
    return new Promise(() => {})
  }
}

export default async function runInThread(task: unknown): Promise<void> {
  const taskFile = await loadTaskFile()
  await taskFile.default(task)
}
