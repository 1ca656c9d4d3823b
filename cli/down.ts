import { resolveWithin } from "../core/resolve-within.ts";
import { askHttp } from "../supervisor/checks/http-get.ts";
import { authorizationFor } from "../supervisor/credentials.ts";
import { inWords } from "../core/duration.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { untilGone } from "../supervisor/runtimes/process/identity.ts";
import {
  aliveIn,
  readRunFile,
  writeRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import {
  sendSignal,
  stopProcess,
} from "../supervisor/runtimes/process/stop.ts";
import { GATEWAY_STOP_WITHIN_MS } from "../embedded/gateway.ts";
import { untilSupervisorHere } from "./stack-client.ts";
import { print, printJson } from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

/** The gateway's drain, then the other services. */
const STOP_TIMEOUT_MS = 180_000;
/** For a supervisor that is not in run.json yet. */
const START_TIMEOUT_MS = 30_000;
const NOTICE_EVERY_MS = 5000;

export const down = defineVerb({
  name: "down",
  description: "Stop everything on this machine after running calls finish.",
  example: "hearth down",
  args: { ...jsonArg },
  run: async ({ json }) => {
    const home = locateHome();
    const supervisor = await untilSupervisorHere(home, START_TIMEOUT_MS);
    const say = json ? () => {} : print;
    if (supervisor === undefined) {
      const stopped = await stopLeftovers(home, say);
      if (json) {
        printJson({ stopped: stopped.length > 0, services: stopped });
      }
      return 0;
    }
    const startedAt = performance.now();
    say(`Stopping Hearth (pid ${supervisor.pid}) …`);
    const response = await askHttp(`${supervisor.address}/api/stop`, {
      method: "POST",
      headers: authorizationFor(home, supervisor.address, process.env),
      signal: AbortSignal.timeout(5000),
    }).catch(() => undefined);
    if (response?.status !== 202) {
      sendSignal(supervisor, "SIGTERM");
    }
    const notices = setInterval(
      () =>
        say(
          `  waiting for running calls to finish (${inWords(performance.now() - startedAt)})`,
        ),
      NOTICE_EVERY_MS,
    );
    const hasExited = await resolveWithin(
      untilGone(supervisor, 50).then(() => true),
      STOP_TIMEOUT_MS,
    );
    clearInterval(notices);
    if (hasExited !== true) {
      if (json) {
        printJson({ stopped: false });
      }
      say(
        `Hearth is still running after ${inWords(STOP_TIMEOUT_MS)}. Run \`hearth logs supervisor\` for the reason.`,
      );
      return 1;
    }
    if (json) {
      printJson({
        stopped: true,
        tookMs: Math.round(performance.now() - startedAt),
      });
    }
    say(
      `Hearth stopped after ${inWords(performance.now() - startedAt)}; keys, spend and notes are kept.`,
    );
    return 0;
  },
});

/** Services may outlive their supervisor. Returns the names of those that were stopped. */
async function stopLeftovers(
  home: Home,
  say: (sentence: string) => void,
): Promise<readonly string[]> {
  const run = readRunFile(home.runFile);
  const order = ["gateway", "notes", "echo", "postgres"];
  const left = Object.entries(run.services)
    .flatMap(([name, entry]) => {
      const alive = aliveIn(entry);
      return alive === undefined ? [] : [{ ...alive, name }];
    })
    .toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  if (left.length === 0) {
    say("Hearth is not running here.");
    return [];
  }
  say("The supervisor is not running; stopping its services:");
  for (const service of left) {
    const isPostgres = service.name === "postgres";
    await stopProcess(
      service,
      isPostgres ? "SIGINT" : "SIGTERM",
      service.name === "gateway" ? GATEWAY_STOP_WITHIN_MS : 30_000,
    );
    say(`  ${service.name} (pid ${service.pid}) stopped`);
  }
  const stopped = Object.entries(run.services).map(
    ([name, entry]) =>
      [name, { ...entry, pid: null, startTime: null }] as const,
  );
  writeRunFile(home.runFile, {
    supervisor: null,
    services: Object.fromEntries(stopped),
  });
  return left.map(({ name }) => name);
}
