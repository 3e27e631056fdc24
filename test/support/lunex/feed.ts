// The feed of Lunex: a REST list of markets, and a socket with a command that selects the followed ones.

import { FeedConnection } from '../../../server/feed/feed-connection.ts'
import type { FeedLane, LaneFigures, LaneLog } from '../../../server/feed/feed-lane.ts'
import type { DirectoryMarket, MarketDirectory } from '../../../server/feed/market-directory.ts'
import type { UpstreamHttp } from '../../../server/upstream/upstream-http.ts'

export class LunexDirectory implements MarketDirectory {
  readonly #http: UpstreamHttp
  readonly #series: readonly string[]

  constructor(http: UpstreamHttp, series: readonly string[]) {
    this.#http = http
    this.#series = series
  }

  async list(signal: AbortSignal): Promise<DirectoryMarket[]> {
    const lists = this.#series.map(async (series) => {
      const ids = await this.#http.fetchJson({ path: `/markets?place=${series}`, signal })
      return (ids as readonly string[]).map((id) => ({ id, marketId: id, series }))
    })
    return (await Promise.all(lists)).flat()
  }
}

export class LunexLane extends FeedConnection implements FeedLane {
  readonly #log: LaneLog
  #wanted: ReadonlySet<string> = new Set()

  constructor(url: string, log: LaneLog) {
    super({ url, timing: { pingMs: 1_000, backOff: { firstMs: 5, maxMs: 40 } }, log })
    this.#log = log
  }

  get figures(): LaneFigures {
    return { ...this.connectionFigures, subscribed: this.#wanted.size, refused: 0, repairs: 0 }
  }

  follow(ids: ReadonlySet<string>): void {
    this.#wanted = new Set(ids)
    this.start()
    this.#follow()
  }

  repair(): void {}

  protected override onOpen(): void {
    this.#follow()
  }

  protected override onMessage(data: Buffer): void {
    this.#log.frame(data)
  }

  #follow(): void {
    this.send(JSON.stringify({ follow: [...this.#wanted] }))
  }
}
