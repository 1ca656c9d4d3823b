import { execFile } from "node:child_process";
import { join } from "node:path";
import type { Environment } from "../environment.ts";
import type { Home } from "./home.ts";
import { explainHearth } from "./node-program.ts";

const answerWithinMs = 30_000;

/** What is wrong with the gateway's configuration, in the words of its own program; empty when it would start. */
export function gatewayMistakes(
  { project, checkout }: Pick<Home, "project" | "checkout">,
  env: Environment,
): Promise<readonly string[]> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [join(project, "gateway", "main.ts"), "--check"],
      { cwd: checkout, timeout: answerWithinMs, env },
      (error, _output, errors) => {
        if (error === null) return resolve([]);
        const sentences = explainHearth(errors.split("\n"));
        resolve(
          sentences.length > 0
            ? sentences
            : ["the gateway's configuration could not be checked"],
        );
      },
    );
  });
}
