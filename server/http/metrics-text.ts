// What the metrics endpoint needs of a registry, and where it may stand.

export interface MetricsText {
  readonly contentType: string
  /** The Prometheus text of all metrics. */
  metrics(): Promise<string>
}

export interface MetricsAddress {
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
}
