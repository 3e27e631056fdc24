// The worker of candles, observations and climate, loaded at its first request.

import type { RecordProbeTask, RecordTask } from '../../shared/record-task.ts'
import type { WarmTask } from '../../shared/stream-task.ts'

export default async function runColdRecordTask(
  task: RecordTask | WarmTask | RecordProbeTask,
): Promise<void> {
  if ('warm' in task) return
  const worker = await import('../../workers/records/task.ts')
  await worker.default(task)
}
