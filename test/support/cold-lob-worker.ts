// The order-book worker, loaded at its first request.

import type { LobTask } from '../../shared/lob-task.ts'
import type { WarmTask } from '../../shared/stream-task.ts'

export default async function runColdLobTask(task: LobTask | WarmTask): Promise<void> {
  if ('warm' in task) return
  const worker = await import('../../workers/lob/task.ts')
  await worker.default(task)
}
