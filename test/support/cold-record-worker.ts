// The worker of candles, observations and climate, loaded at its first request.

import type { RecordProbeTask, RecordTask, RecordWarmTask } from '../../shared/record-task.ts'

export default async function runColdRecordTask(
  task: RecordTask | RecordWarmTask | RecordProbeTask,
): Promise<void> {
  if ('warm' in task) return
  const worker = await import('../../workers/records/task.ts')
  await worker.default(task)
}
