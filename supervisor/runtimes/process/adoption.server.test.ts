import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startProcess } from "../../../core/execute.ts";
import { programSpec } from "../../../test/supervisor/specs.ts";
import { temporaryHome } from "../../../test/supervisor/temporary-home.ts";
import { waitFor } from "../../../test/wait-for.ts";
import { freePort } from "../../../test/servers/ports.ts";
import { createHome } from "../../home/home.ts";
import { openHistory } from "../../history/history.ts";
import { adoptProcess } from "./adoption.ts";
import { handOver } from "./hand-over.ts";
import { isAlive, startTimeOf, type ProcessIdentity } from "./identity.ts";
import { killGroup } from "./stop.ts";

const SLEEPER = "setInterval(() => {}, 1000)";

/** Starts a successor on SIGUSR2 and never ends, as a gateway whose calls take long. */
const PREDECESSOR = `
  const { spawn } = require("node:child_process");
  const { readFileSync, writeFileSync } = require("node:fs");
  process.on("SIGUSR2", () => {
    const { started } = JSON.parse(readFileSync(process.argv[1], "utf8"));
    const options = { detached: true, stdio: "ignore" };
    const { pid } = spawn(process.execPath, ["-e", ${JSON.stringify(SLEEPER)}], options);
    writeFileSync(started, pid + "\\n");
  });
  console.log("ready");
  ${SLEEPER}`;

test("a successor that was taking over when the supervisor was killed is stopped by the next supervisor", async () => {
  const { home, remove } = temporaryHome();
  createHome(home);
  const history = openHistory(home.history);
  const successorFile = join(home.handed, "successor.json");
  const started = `${successorFile}.started`;
  const spec = programSpec(
    home.root,
    { name: "gateway", port: await freePort() },
    { successorFile },
  );
  const log = join(home.root, "log");
  const predecessor = startProcess(
    process.execPath,
    ["-e", PREDECESSOR, successorFile],
    { detached: true, stdout: "pipe" },
  );
  const running = identityOf(predecessor.pid);
  let successor: ProcessIdentity | undefined;
  try {
    await new Promise((resolve) => predecessor.stdout?.once("data", resolve));
    const handingOver = handOver(running, successorFile, spec, log);
    const pid = await waitFor("the successor", () => readPid(started));
    successor = identityOf(pid);
    await waitFor("its start time", () =>
      readFileSync(started, "utf8").includes(successor?.startTime ?? "-"),
    );
    // Of the killed supervisor only the files are left: no entry names the successor.
    await adoptProcess(spec, undefined, {
      history,
      logFile: log,
      fingerprintKey: "key",
      upgrading: false,
    });
    expect(isAlive(successor)).toBe(false);
    killGroup(running);
    await handingOver;
  } finally {
    killGroup(running);
    if (successor !== undefined) {
      killGroup(successor);
    }
    history.close();
    remove();
  }
});

function identityOf(pid: number | undefined): ProcessIdentity {
  return { pid: pid ?? 0, startTime: startTimeOf(pid ?? 0) ?? "" };
}

function readPid(path: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(path, "utf8"), 10) || undefined;
  } catch {
    return undefined;
  }
}
