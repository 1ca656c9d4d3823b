import { textOf } from "../../core/failure.ts";
import type { Context, Module } from "../context.ts";
import { rollUpChecks } from "./check-hours.ts";

const ROLL_UP_EVERY_MS = 300_000;

/** The hourly sums of check results. */
export function openChecksModule({ history, onNotice }: Context): Module {
  let timer: NodeJS.Timeout | undefined;
  const rollUp = () => {
    try {
      rollUpChecks(history.db, Date.now());
    } catch (error) {
      onNotice(`cannot sum up the results of checks: ${textOf(error)}`);
    }
  };
  return {
    start: () => {
      timer = setInterval(rollUp, ROLL_UP_EVERY_MS);
    },
    stop: async () => clearInterval(timer),
  };
}
