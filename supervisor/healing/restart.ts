import type { Watch } from "../checks/watch.ts";
import { byAuthor } from "../history/author.ts";
import type { Runtime } from "../runtimes/runtime.ts";

/** Restarts a service on demand and resets its restart budget; resolves when it is up again. */
export async function restartOnRequest(
  runtime: Runtime,
  watch: Watch | undefined,
  name: string,
): Promise<void> {
  watch?.resetHealing(name);
  await runtime.restart(name, `requested ${byAuthor()}`, "operator");
}
