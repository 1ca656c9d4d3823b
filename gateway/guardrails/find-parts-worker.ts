import { parentPort } from "node:worker_threads";
import { READY } from "../timed-worker.ts";
import { findAll, type SearchTask } from "./find-parts.ts";
import type { Finding } from "./guard.ts";
import { checkingOf } from "./open-guard.ts";

parentPort?.on("message", (task: SearchTask) => {
  // A failure ends the thread, and fails the task.
  void search(task).then((found) => parentPort?.postMessage(found));
});

async function search({
  config,
  texts,
}: SearchTask): Promise<readonly (readonly Finding[])[]> {
  const checking = checkingOf(config);
  return checking.kind === "local" ? findAll(checking, texts) : [];
}

parentPort?.postMessage(READY);
