import { execFile } from "node:child_process";
import { join } from "node:path";
import type { Environment } from "../core/environment.ts";
import type { Home } from "../supervisor/home/home.ts";
import { explainHearth } from "./node-program.ts";

/** On a machine that is very busy, a program that starts takes tens of seconds. */
const ANSWER_WITHIN_MS = 120_000;

/** What is wrong with the gateway's configuration, in the words of its own program; empty when it would start. */
export function gatewayMistakes(
  { project, checkout }: Pick<Home, "project" | "checkout">,
  env: Environment,
): Promise<readonly string[]> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [join(project, "gateway", "main.ts"), "--check"],
      { cwd: checkout, timeout: ANSWER_WITHIN_MS, env },
      (error, _output, errors) => {
        if (error === null) {
          return resolve([]);
        }
        const sentences = explainHearth(errors.split("\n"));
        if (sentences.length > 0) {
          return resolve(sentences);
        }
        const ended =
          error.killed === true
            ? `took longer than ${ANSWER_WITHIN_MS / 1000} s`
            : `ended with ${error.signal ?? error.code ?? "an error"}`;
        resolve([
          `the gateway's configuration could not be checked: the check ${ended}`,
        ]);
      },
    );
  });
}
