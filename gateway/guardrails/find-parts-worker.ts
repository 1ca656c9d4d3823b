import { answerTasks } from "../timed-worker.ts";
import { findAll, type SearchTask } from "./find-parts.ts";
import { checkingOf } from "./open-guard.ts";

answerTasks(async ({ check, texts }: SearchTask) => {
  const checking = checkingOf(check);
  return checking.kind === "local" ? findAll(checking, texts) : [];
});
