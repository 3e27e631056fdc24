// The order-book worker, loaded at its first request.

import type { LobTask, LobWarmTask } from '../../shared/lob-task.ts'

export default async function runColdLobTask(task: LobTask | LobWarmTask): Promise<void> {
  if ('warm' in task) return
  const worker = await import('../../workers/lob/task.ts')
  await worker.default(task)
}
