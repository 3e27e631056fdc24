// A database for the export queue, behind a proxy that can make it unavailable: a fresh one on the server of DATABASE_URL, or else
// an embedded store, to which the queue connects as to a server.

import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { FaultProxy } from './fault-proxy.ts'
import { makeEmptyStore } from './postgres.ts'

export interface QueueStore {
  readonly url: string
  readonly proxy: FaultProxy
  close(): Promise<void>
}

export async function makeQueueStore(): Promise<QueueStore> {
  const place = await makeEmptyStore()
  const store = await openRelationalStore(place)
  const { address } = store.postgres
  const own = new URL(address.kind === 'server' ? address.url : 'postgres://postgres@localhost/postgres')
  const proxy =
    address.kind === 'server'
      ? await FaultProxy.tcp(own.hostname, Number(own.port || 5432))
      : await FaultProxy.toSocket(address.socketPath)
  own.host = `127.0.0.1:${proxy.port}`
  return {
    url: own.href,
    proxy,
    async close() {
      await proxy.refuse()
      await store.close()
      await place.remove()
    },
  }
}
