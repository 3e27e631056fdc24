// What the metrics endpoint needs of a registry, and the address where metrics are served.

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
