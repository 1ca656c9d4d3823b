import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import type { StreamClient } from "../providers/stream-start.ts";
import type { Call } from "./call.ts";

/**
 * What ends a call that waits before it is sent: its client leaves, another one answers first, its time is over, or the gateway
 * stops. `signal` is aborted with the {@link CallError} that says so.
 */
export class WaitEnding {
  readonly #aborter = new AbortController();
  readonly #client: StreamClient | null;
  readonly #race: AbortSignal | null;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #onClose = () => this.#end(clientLeft());
  readonly #onRace = () =>
    this.#end(
      new CallError("upstream_error", "Another call has answered first.", {
        status: 499,
      }),
    );

  /** `client`: null for none that can leave. `tooLate` describes the end of the call's time, where its error is the answer. */
  constructor(
    { activeCalls }: Pick<Gateway, "activeCalls">,
    { id, race, deadlineAt }: Call,
    client: StreamClient | null,
    tooLate = outOfTime,
  ) {
    this.#client = client;
    this.#race = race;
    client?.once("close", this.#onClose);
    race?.addEventListener("abort", this.#onRace);
    if (deadlineAt !== null) {
      this.#timer = setTimeout(
        () => this.#end(tooLate()),
        Math.max(0, deadlineAt - performance.now()),
      );
    }
    if (client?.destroyed === true) {
      this.#onClose();
    } else if (race?.aborted === true) {
      this.#onRace();
    }
    activeCalls.endsBy(id, () =>
      this.#end(
        new CallError("overloaded", "The gateway is stopping. Try again.", {
          status: 503,
        }),
      ),
    );
  }

  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  forget(): void {
    clearTimeout(this.#timer);
    this.#client?.off("close", this.#onClose);
    this.#race?.removeEventListener("abort", this.#onRace);
  }

  #end(error: CallError): void {
    this.#aborter.abort(error);
  }
}

function outOfTime(): CallError {
  return new CallError("upstream_error", "The call's time is over.", {
    status: 408,
  });
}

export function clientLeft(): CallError {
  return new CallError("upstream_error", "The client has left.", {
    status: 499,
  });
}
