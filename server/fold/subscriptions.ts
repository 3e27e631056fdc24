// Facts about subscriptions before their first message: whether their beginning was recorded, and whether their commands asked
// for prices of the yes leg.

/** Commands that wait for their answers, at most. */
const IMPORT_COMMANDS_MAX = 1_024

/** Plain data. */
type SubscriptionsState = ReturnType<Subscriptions['state']>

export class Subscriptions {
  readonly #flagByCommand: Map<number, boolean>
  readonly #subscribed: Map<number, boolean | undefined>
  /** The flag of the latest command. */
  #flag: boolean | undefined
  /** The default if no command states it. */
  readonly #usesYesPrice: boolean

  constructor(usesYesPrice: boolean, state?: SubscriptionsState) {
    this.#usesYesPrice = usesYesPrice
    this.#flagByCommand = new Map(state?.flagByCommand)
    this.#subscribed = new Map(state?.subscribed)
    this.#flag = state?.flag
  }

  state() {
    return {
      flagByCommand: [...this.#flagByCommand],
      subscribed: [...this.#subscribed],
      flag: this.#flag,
    }
  }

  // A recording may have commands without their answers, so a command's flag applies from then on. With its answer, it applies to
  // that subscription, whatever later commands say.
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

  /** Takes the facts of a subscription at its first message. A later subscription of the same number is another one. */
  take(sid: number): { readonly isBegun: boolean; readonly isTurned: boolean | null } {
    const isBegun = this.#subscribed.has(sid)
    const isTurned = this.#subscribed.get(sid) ?? this.isTurned
    this.#subscribed.delete(sid)
    return { isBegun, isTurned }
  }

  /** Whether prices are those of the yes leg, by commands without an answer; null if unknown. */
  get isTurned(): boolean | null {
    return this.#flag ?? (this.#usesYesPrice ? true : null)
  }

  clear(): void {
    this.#subscribed.clear()
    this.#flagByCommand.clear()
    this.#flag = undefined
  }
}
