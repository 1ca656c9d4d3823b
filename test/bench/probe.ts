// Preloaded into a measured process (`--import`) to report its cost and to record its profile.
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { readLoopDelay } from "./loop-delay.ts";
import type { ProbedCost } from "./meter.ts";

type Question =
  | { readonly probe: "reset" }
  | { readonly probe: "read" }
  | { readonly probe: "profile" }
  /** Writes the profile since `profile` in the format of Chrome's developer tools. */
  | { readonly probe: "profiled"; readonly file: string };

const RESOLUTION_MS = 5;
const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delays.enable();
let cpuBefore = process.cpuUsage();
let session: Session | null = null;

async function answer(question: Question): Promise<object> {
  switch (question.probe) {
    case "reset":
      delays.reset();
      cpuBefore = process.cpuUsage();
      return {};
    case "read":
      return cost();
    case "profile":
      session = new Session();
      session.connect();
      await session.post("Profiler.enable");
      await session.post("Profiler.setSamplingInterval", { interval: 500 });
      await session.post("Profiler.start");
      return {};
    case "profiled": {
      const stopped = await session?.post("Profiler.stop");
      session?.disconnect();
      writeFileSync(question.file, JSON.stringify(stopped?.profile));
      return {};
    }
  }
}

function cost(): ProbedCost {
  const { user, system } = process.cpuUsage(cpuBefore);
  const { rss, heapUsed } = process.memoryUsage();
  return {
    cpuMs: (user + system) / 1_000,
    rssMb: rss / 2 ** 20,
    heapMb: heapUsed / 2 ** 20,
    loopDelay: readLoopDelay(delays, RESOLUTION_MS),
  };
}

process.on("message", (question: Question) => {
  if (!("probe" in question)) {
    return;
  }
  void answer(question)
    .catch((error: unknown) => ({ failed: (error as Error).message }))
    .then((result) => process.send?.(result));
});
// The benchmark has ended.
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
process.channel?.unref();
