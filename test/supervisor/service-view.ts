import type {
  ServiceState,
  ServiceView,
} from "../../supervisor/runtimes/runtime.ts";

/** A service that was killed, whatever its state. */
export function serviceView(name: string, state: ServiceState): ServiceView {
  return {
    name,
    state,
    since: 0,
    pid: null,
    address: "",
    port: 1,
    adopted: false,
    tookMs: null,
    restarts: 0,
    reason: "killed by SIGKILL",
  };
}
