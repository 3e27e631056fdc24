// What is known of subscriptions before their first message: which of them were seen to begin, and whether their
// commands asked for prices of the yes leg.

/** Commands whose answer an import still waits for. */
const IMPORT_COMMANDS_MAX = 1_024

export interface SubscriptionsState {
  readonly flagByCommand: readonly (readonly [number, boolean])[]
  readonly subscribed: readonly (readonly [number, boolean | undefined])[]
  readonly flag: boolean | undefined
}

export class Subscriptions {
  readonly #flagByCommand: Map<number, boolean>
  readonly #subscribed: Map<number, boolean | undefined>
  /** That of the latest command. */
  #flag: boolean | undefined
  /** What holds where no command says anything. */
  readonly #usesYesPrice: boolean

  constructor(usesYesPrice: boolean, state?: SubscriptionsState) {
    this.#usesYesPrice = usesYesPrice
    this.#flagByCommand = new Map(state?.flagByCommand)
    this.#subscribed = new Map(state?.subscribed)
    this.#flag = state?.flag
  }

  state(): SubscriptionsState {
    return {
      flagByCommand: [...this.#flagByCommand],
      subscribed: [...this.#subscribed],
      flag: this.#flag,
    }
  }

  // A recording may hold the commands without their answers, so a command's flag holds from then on; with the answer it
  // holds for that subscription whatever comes later.
  rememberCommand(id: number, useYesPrice: boolean | undefined): void {
    if (useYesPrice === undefined) return
    this.#flag = useYesPrice
    if (id !== 0 && this.#flagByCommand.size < IMPORT_COMMANDS_MAX) this.#flagByCommand.set(id, useYesPrice)
  }

  /** The command's answer: the subscription begins. */
  begin(command: number, sid: number): void {
    const flag = this.#flagByCommand.get(command)
    this.#flagByCommand.delete(command)
    this.#subscribed.set(sid, flag)
  }

  /** What is known of a subscription whose first message is here; the next one of its number is another. */
  take(sid: number): { readonly isBegun: boolean; readonly isTurned: boolean | null } {
    const isBegun = this.#subscribed.has(sid)
    const isTurned = this.#subscribed.get(sid) ?? this.isTurned
    this.#subscribed.delete(sid)
    return { isBegun, isTurned }
  }

  /** Whether prices are those of the yes leg, as far as commands without an answer say; null where nothing does. */
  get isTurned(): boolean | null {
    return this.#flag ?? (this.#usesYesPrice ? true : null)
  }

  clear(): void {
    this.#subscribed.clear()
    this.#flagByCommand.clear()
    this.#flag = undefined
  }
}
