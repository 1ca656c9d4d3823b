import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { containerLog } from "../../infra/engine.ts";
import { logsIn as postgresLogsIn } from "../servers/postgres-login.ts";
import { containers } from "./containers.ts";
import { sessionOf, stateFile } from "./day-two.ts";
import type { Testbed } from "./testbed.ts";
import { addresses } from "./two-engines.ts";

/** Asserts that no secret is in these texts, the state, or the `docker inspect` output of any container. */
export async function expectNowhere(
  testbed: Testbed,
  secrets: readonly string[],
  texts: Readonly<Record<string, string>>,
): Promise<void> {
  const places: Record<string, string> = {
    ...texts,
    "the state": readFileSync(stateFile(testbed), "utf8"),
  };
  const { engines } = await sessionOf(testbed);
  for (const host of ["a", "b"] as const) {
    for (const name of containers[host]) {
      const container = `hearth-${name}`;
      places[`docker inspect ${container} on ${host}`] = await testbed.docker(
        host,
        "inspect",
        container,
      );
      places[`the log of ${container} on ${host}`] = await containerLog(
        engines[host],
        container,
        100_000,
      );
    }
  }
  for (const [place, text] of Object.entries(places)) {
    for (const secret of secrets) {
      const at = text.indexOf(secret);
      expect(at, `${place}: …${text.slice(Math.max(0, at - 200), at)}`).toBe(
        -1,
      );
    }
  }
}

/** Whether Postgres accepts the password. */
export const logsIn = (user: string, password = "") =>
  postgresLogsIn({
    host: addresses.a,
    user,
    password,
    // The certificate is verified in encryption.scenario.ts.
    ssl: { rejectUnauthorized: false },
  });

/** The status of a request with a master key. */
export async function keyAnswer(edge: string, key = ""): Promise<number> {
  const answer = await fetch(`${edge}/key/list`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await answer.text();
  return answer.status;
}
