import { z } from "zod";
import { name, whole } from "../../config/fields.ts";
import type { ServiceStats, ServiceView } from "../../runtimes/runtime.ts";
import { everyCheck } from "./every-check.ts";
import {
  failing,
  okUnless,
  type ProbeContext,
  type ProbeResult,
} from "./probe.ts";

export const containerCheck = z.strictObject({
  ...everyCheck(),
  kind: z.literal("container"),
  container: name,
  expect: z
    .strictObject({ memory_below_percent: whole(1, 100).default(95) })
    .prefault({}),
});

/** The state of a service in its runtime: running, healthy, restarted, out of memory. */
export async function probeContainer(
  { container, expect }: z.output<typeof containerCheck>,
  { runtime, before }: ProbeContext,
): Promise<ProbeResult> {
  if (runtime === undefined) {
    return failing(
      "this supervisor has no access to containers: HEARTH_RUNTIME is none",
    );
  }
  const view = await runtime.probe(container);
  if (view === undefined) {
    return failing("container not found");
  }
  const stats = runtime.stats(container);
  const memory = memoryOf(stats);
  const facts = view.container;
  const measures = {
    restarts: view.restarts,
    ...(stats === undefined ? {} : { memory_bytes: stats.memoryBytes }),
    ...(stats === undefined ? {} : { cpu_seconds: stats.cpuSeconds }),
    ...(memory === undefined ? {} : { memory_percent: memory }),
  };
  const text = [
    describeState(view),
    ...(memory === undefined ? [] : [`${memory} % of its memory`]),
    ...(view.restarts > 0 ? [`restarted ${view.restarts} times`] : []),
  ].join(", ");
  if (view.state !== "running" || facts?.health === "unhealthy") {
    return failing(
      facts?.oomKilled === true && view.state !== "running"
        ? `killed: out of memory; ${text}`
        : text,
      measures,
    );
  }
  const earlier = before?.["restarts"] ?? view.restarts;
  return okUnless(
    [
      memory !== undefined &&
        memory > expect.memory_below_percent &&
        `over ${expect.memory_below_percent} % of its memory is in use`,
      view.restarts > earlier &&
        ((facts ?? view.pod?.lastEnd)?.oomKilled === true
          ? "it ran out of memory and was restarted"
          : "it ended and was restarted"),
    ],
    text,
    measures,
  );
}

function memoryOf(stats: ServiceStats | undefined): number | undefined {
  return stats?.memoryLimitBytes === undefined || stats.memoryLimitBytes === 0
    ? undefined
    : Math.round((100 * stats.memoryBytes) / stats.memoryLimitBytes);
}

function describeState({ state, reason, container }: ServiceView): string {
  const output = container?.healthOutput.replace(/\s+/g, " ").trim() ?? "";
  if (container?.health === "unhealthy") {
    return `unhealthy${output === "" ? "" : `: ${output.slice(0, 200)}`}`;
  }
  return reason === null ? state : `${state} (${reason})`;
}
