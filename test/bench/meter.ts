import { readFileSync } from "node:fs";
import type { LoopDelay } from "./loop-delay.ts";
import { processCpu } from "./process-cpu.ts";
import type { Program } from "./programs.ts";

/** What a process has spent since the last reset. */
interface Cost {
  /** CPU time of all threads, in ms. */
  readonly cpuMs: number;
  readonly rssMb: number;
  /** null unless it is a Node process. */
  readonly loopDelay: LoopDelay | null;
}

/** Of a Node process with the probe. */
export interface ProbedCost extends Cost {
  readonly heapMb: number;
  readonly loopDelay: LoopDelay;
}

/** Measures the cost of a process. */
export interface Meter<Read extends Cost = Cost> {
  reset(): Promise<void>;
  read(): Promise<Read>;
}

/** Of a program that was started with `probe.ts`. */
export function meterOf(program: Program): Meter<ProbedCost> {
  return {
    reset: async () => {
      await program.ask({ probe: "reset" });
    },
    read: () => program.ask<ProbedCost>({ probe: "read" }),
  };
}

/** Of a process and its children that run any other program; null without /proc. */
export function processMeter(pid: number): Meter | null {
  if (process.platform !== "linux") {
    return null;
  }
  let before = processCpu(pid);
  return {
    reset() {
      before = processCpu(pid);
      return Promise.resolve();
    },
    read: () =>
      Promise.resolve({
        cpuMs: processCpu(pid) - before,
        rssMb: residentMb(pid),
        loopDelay: null,
      }),
  };
}

function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1_024;
}
