import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { askHttp, answersOk } from "../supervisor/checks/http-get.ts";
import { authorizationFor } from "../supervisor/credentials.ts";
import type { FoundRunner } from "../supervisor/gateway/find-runners.ts";
import type { Home } from "../supervisor/home/home.ts";
import { compileCacheOf, explainHearth } from "../embedded/node-program.ts";
import { readSecretsFile } from "../supervisor/home/secrets.ts";
import { startProcess } from "../core/execute.ts";
import { Failure } from "../core/failure.ts";
import { lastLines, sizeOf } from "../supervisor/runtimes/process/log-files.ts";
import { readRunFile } from "../supervisor/runtimes/process/run-file.ts";
import { alreadyRunsSentence } from "../supervisor/release/version.ts";
import { SMALL_MEMORY } from "../supervisor/node-options.ts";
import type { Status } from "../supervisor/status.ts";
import { alreadyRunning, findFirstSteps } from "./first-steps.ts";
import { openScreen } from "./live-screen.ts";
import { createSignInLink } from "./open.ts";
import { findStack, supervisorHere } from "./stack-client.ts";
import { paint, print } from "./terminal.ts";
import type { ExitCode } from "./verb.ts";

/** How `up` was called. */
export interface Start {
  readonly echo: boolean;
  readonly runners: Promise<readonly FoundRunner[]>;
  readonly configWarnings: Promise<readonly string[]>;
  /** The start of the command, by performance.now(). */
  readonly startedAt: number;
  /** Whether this machine has no data of Hearth yet. */
  readonly isFirst: boolean;
  readonly json: boolean;
}

const POLL_MS = 100;

/** Starts the supervisor as a separate process, displays its progress, and returns when everything is up. */
export async function upDetached(home: Home, start: Start): Promise<ExitCode> {
  const { json } = start;
  const running = supervisorHere(home);
  if (running !== undefined) {
    const sentence = alreadyRunsSentence(running);
    print(json ? alreadyRunning(sentence) : sentence);
    return 0;
  }
  const logFile = join(home.logs, "supervisor.log");
  const logFrom = sizeOf(logFile);
  const log = openSync(logFile, "a", 0o600);
  const supervisor = startProcess(
    process.execPath,
    [...SMALL_MEMORY, join(home.project, "supervisor", "main.ts")],
    {
      cwd: home.checkout,
      detached: true,
      stdout: log,
      stderr: log,
      env: {
        ...process.env,
        HEARTH_RUNTIME: "process",
        HEARTH_HOME: home.root,
        ...compileCacheOf(home),
        HEARTH_ECHO: start.echo ? "on" : "off",
      },
    },
  );
  closeSync(log);
  let hasEnded = false;
  void supervisor.ended.then(() => (hasEnded = true));
  const screen = openScreen(json);
  try {
    const status = await untilUp(home, supervisor.pid ?? 0, {
      show: (status) => status.services.forEach(screen.show),
      hasEnded: () => hasEnded,
    });
    screen.end();
    if (status === undefined) {
      throw new Failure(reasonOfExit(logFile, logFrom));
    }
    if (!json) {
      status.notices.forEach((notice) => print(paint("soft", `  ${notice}`)));
    }
    print(await textWhenUp(home, start, status));
    return 0;
  } finally {
    supervisor.unref();
    screen.end();
  }
}

async function untilUp(
  home: Home,
  pid: number,
  on: {
    readonly show: (status: Status) => void;
    readonly hasEnded: () => boolean;
  },
): Promise<Status | undefined> {
  while (!on.hasEnded()) {
    const { supervisor } = readRunFile(home.runFile);
    if (supervisor?.pid === pid) {
      const status = await readStatus(home, supervisor.address);
      if (status !== undefined) {
        on.show(status);
      }
      if (status?.phase === "running") {
        return status;
      }
    }
    await sleep(POLL_MS);
  }
  return undefined;
}

async function readStatus(
  home: Home,
  address: string,
): Promise<Status | undefined> {
  try {
    const answer = await askHttp(`${address}/api/status`, {
      headers: authorizationFor(home, address, process.env),
      signal: AbortSignal.timeout(2000),
    });
    const body: unknown = JSON.parse(answer.body);
    return z.looseObject({ phase: z.string() }).safeParse(body).success
      ? (body as Status)
      : undefined;
  } catch {
    return undefined;
  }
}

function reasonOfExit(logFile: string, logFrom: number): readonly string[] {
  const reasons = explainHearth(lastLines(logFile, 500, logFrom));
  return reasons.length > 0
    ? reasons
    : [
        `the supervisor exited before everything was up; see the end of ${logFile}.`,
      ];
}

async function textWhenUp(
  home: Home,
  { runners, configWarnings, startedAt, isFirst, json }: Start,
  status: Status,
): Promise<string> {
  const addressOf = (name: string) =>
    status.services.find((service) => service.name === name)?.address ?? "";
  const gateway = addressOf("gateway");
  return findFirstSteps({
    addresses: {
      gateway,
      notes: addressOf("notes"),
      supervisor: status.supervisor.address,
    },
    signInLink: await createSignInLink(
      findStack(status.supervisor.address),
    ).catch(() => undefined),
    secretsFile: home.secrets,
    masterKey: readSecretsFile(home)?.masterKey ?? "",
    gatewayReady: await answersOk(
      `${gateway}/health/readiness`,
      AbortSignal.timeout(2000),
    ).catch(() => false),
    tookMs: performance.now() - startedAt,
    runners: await runners,
    configWarnings: await configWarnings,
    stopWith: "npx hearth down",
    isFirst,
    json,
  });
}
