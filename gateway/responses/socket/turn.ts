import { InnerCall } from "../inner-call.ts";
import type { ConnectionMemory } from "../response-context.ts";

/** One call over a WebSocket. */
export class Turn extends InnerCall {
  readonly memory: ConnectionMemory;
  readonly isWarmUp: boolean;

  constructor(memory: ConnectionMemory, isWarmUp: boolean) {
    super();
    this.memory = memory;
    this.isWarmUp = isWarmUp;
  }
}
