import type { Watch } from "../checks/watch.ts";
import type { Runtime } from "../runtimes/runtime.ts";

/** Restarts a service since the operator said so; resolves when it is up again. Its healing may begin anew. */
export async function restartAsked(
  runtime: Runtime,
  watch: Watch | undefined,
  name: string,
): Promise<void> {
  watch?.renewHealing(name);
  await runtime.restart(name, "asked by the operator", "operator");
}
