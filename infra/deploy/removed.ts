import { queryHost } from "./host-view.ts";
import { renewProviders } from "./providers.ts";
import type { Session } from "./session.ts";
import { CONTAINER_TYPE, hostOf, readState, type State } from "./state.ts";

/**
 * Removes containers from the state that were removed manually, so that the next `up` creates them: the engine compares the
 * program with its state only, and considers a missing container unchanged. Resources excluded from the run, by URN, are not
 * checked.
 */
export async function forgetRemoved(
  session: Session,
  leftOut: readonly string[] = [],
  state?: State,
): Promise<void> {
  const { engines, options, say, stack } = session;
  const { resources } = state ?? (await readState(stack));
  const known = resources.flatMap((resource) => {
    const host = hostOf(resource);
    return resource.type === CONTAINER_TYPE &&
      resource.delete !== true &&
      host !== null &&
      !leftOut.includes(resource.urn)
      ? [{ ...resource, host }]
      : [];
  });
  const on = (host: "a" | "b") => known.some((each) => each.host === host);
  const [a, b] = await Promise.all([
    on("a") ? queryHost(engines.a).catch(() => null) : null,
    on("b") ? queryHost(engines.b).catch(() => null) : null,
  ]);
  // The engine itself reports a host that does not respond.
  const there = { a, b };
  const gone = known.filter(
    ({ id, host }) =>
      there[host]?.containers.some((container) => container.id === id) ===
      false,
  );
  if (gone.length === 0) {
    return;
  }
  say(
    `Removed manually: ${gone.map(({ inputs, host }) => `${String(inputs?.["name"])} on host ${host.toUpperCase()}`).join(", ")}.`,
  );
  await renewProviders(session, on("a") ? (on("b") ? undefined : "b") : "a");
  await stack.refresh({ ...options, target: gone.map(({ urn }) => urn) });
}
