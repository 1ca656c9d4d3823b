import { answerTasks } from "../timed-worker.ts";
import { findAll, type SearchTask } from "./find-parts.ts";
import type { Checking } from "./guard.ts";
import { checkingOf } from "./open-guard.ts";

/** By the check as JSON: an expression takes milliseconds to compile. */
const known = new Map<string, Checking>();

answerTasks(async ({ check, texts }: SearchTask) => {
  const name = JSON.stringify(check);
  const checking = known.get(name) ?? checkingOf(check);
  known.set(name, checking);
  return checking.kind === "local" ? findAll(checking, texts) : [];
});
