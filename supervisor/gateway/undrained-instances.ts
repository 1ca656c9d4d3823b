import type { Context, Module } from "../context.ts";
import type { Attention } from "../status.ts";
import type { AdminApi } from "./admin-api.ts";
import { describeUndrained, isUndrained, listInstances } from "./instances.ts";
import { pollGateway } from "./poll-gateway.ts";

/** A gateway that is being replaced or moved is back by then. */
const MAY_BE_RESTARTING_S = 300;

/** Reports gateways that have been stopped for minutes with calls only in their journal, on the host that runs jobs. */
export function openUndrainedInstancesModule(
  context: Pick<Context, "env" | "need">,
): Module {
  return pollGateway(context, "instances", (api) =>
    findUndrained(api, Date.now),
  );
}

export function findUndrained(
  api: AdminApi,
  now: () => number,
): () => Promise<readonly Attention[]> {
  return async () => {
    const stopped = (await listInstances(api)).filter(
      (one) =>
        isUndrained(one) &&
        (one.silent_seconds ?? Infinity) > MAY_BE_RESTARTING_S,
    );
    return stopped.map((one) => ({
      name: `gateway instance ${one.instance}`,
      about: { topic: "supervisor", id: null },
      level: "warning",
      text: `gateway instance ${one.instance} ${describeUndrained(one)}: start it again, or forget it if its journal is lost`,
      since: now() - (one.silent_seconds ?? 0) * 1_000,
      command: `hearth instances forget ${one.instance}`,
      output: null,
      tried: [],
      silenced: null,
    }));
  };
}
