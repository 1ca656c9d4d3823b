import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSmallDisk } from "../../../test/servers/small-disk.ts";
import { answersOk } from "../../checks/http-get.ts";
import { projectRoot } from "../../home/home.ts";
import { Failure } from "../../../core/failure.ts";
import { openHistory, type History } from "../../history/history.ts";
import {
  programSpec,
  testRuntime,
  type ProgramChoice,
} from "../../../test/supervisor/specs.ts";
import { temporaryHome } from "../../../test/supervisor/temporary-home.ts";
import { waitFor } from "../../../test/wait-for.ts";
import { startTimeOf } from "./identity.ts";
import { sizeOf } from "./log-files.ts";
import { freePort } from "../../../test/servers/ports.ts";
import { isFree } from "./ports.ts";
import type { ProcessRuntime } from "./process-runtime.ts";
import { readRunFile, writeRunFile, type RunFile } from "./run-file.ts";
import type { ServiceSpec } from "./service-spec.ts";
import { killGroup } from "./stop.ts";

let place: ReturnType<typeof temporaryHome>;
let history: History;
const runtimes: ProcessRuntime[] = [];

beforeEach(() => {
  place = temporaryHome();
  mkdirSync(place.home.logs, { recursive: true });
  history = openHistory(place.home.history);
});
afterEach(async () => {
  for (const runtime of runtimes.splice(0)) {
    runtime.halt();
    await runtime.stop("test ended");
  }
  history.close();
  place.remove();
});

async function program(
  name: string,
  args: readonly string[] = [],
  change: Partial<ServiceSpec> = {},
): Promise<ServiceSpec> {
  const choice = { name, port: await freePort(), args };
  return programSpec(place.directory, choice, change);
}

function recorded(): readonly string[] {
  return readFileSync(join(place.directory, "record"), "utf8")
    .trim()
    .split("\n");
}

function runtimeOf(
  specs: readonly ServiceSpec[],
  max?: number,
): ProcessRuntime {
  const runtime = testRuntime(place.home, history, specs, max);
  runtimes.push(runtime);
  return runtime;
}

function pidOf(runtime: ProcessRuntime, name: string): number {
  const pid = runtime.inspect(name)?.pid;
  if (pid == null) {
    throw new Error(`${name} has no process`);
  }
  return pid;
}

test("services start after their dependencies and stop before them", async () => {
  const runtime = runtimeOf([
    await program("store"),
    await program("tool"),
    await program("front", [], { needs: ["store"], uses: ["tool"] }),
  ]);
  await runtime.start();
  expect(runtime.list().map(({ state }) => state)).toEqual([
    "running",
    "running",
    "running",
  ]);
  const started = recorded();
  expect(started.indexOf("front started")).toBeGreaterThan(
    started.indexOf("store started"),
  );
  await runtime.stop("test");
  const all = recorded();
  expect(all.indexOf("front stopped")).toBe(3);
  expect(all).toHaveLength(6);
  expect(runtime.list().map(({ state, pid }) => [state, pid])).toEqual([
    ["stopped", null],
    ["stopped", null],
    ["stopped", null],
  ]);
  expect(readRunFile(place.home.runFile).supervisor).toBeNull();
});

test("a killed program is restarted, with the reason in the history", async () => {
  const runtime = runtimeOf([await program("one")]);
  await runtime.start();
  const first = pidOf(runtime, "one");
  process.kill(first, "SIGKILL");
  const second = await waitFor("a new process", () => {
    const view = runtime.inspect("one");
    return view?.state === "running" && view.pid !== first && view;
  });
  expect(second.restarts).toBe(1);
  expect(history.latest(20)).toContainEqual(
    expect.objectContaining({
      kind: "act",
      name: "one",
      to: "restart",
      reason: "killed by SIGKILL",
    }),
  );
  expect(readRunFile(place.home.runFile).services["one"]?.pid).toBe(second.pid);
});

test("a program that ends too often is given up until a restart by a person", async () => {
  const runtime = runtimeOf([await program("one")], 2);
  await runtime.start();
  for (let kills = 0; kills < 3; kills += 1) {
    const running = await waitFor("it to run", () => {
      const view = runtime.inspect("one");
      return view?.state === "running" && view.restarts === kills && view;
    });
    process.kill(running.pid ?? 0, "SIGKILL");
  }
  const view = await waitFor("giving up", () => {
    const seen = runtime.inspect("one");
    return seen?.state === "gave-up" && seen;
  });
  expect(view.reason).toBe(
    "killed by SIGKILL; gave up after 2 restarts in 10 min",
  );
  await runtime.restart("one", "requested", "operator");
  expect(runtime.inspect("one")?.state).toBe("running");
  process.kill(pidOf(runtime, "one"), "SIGKILL");
  await waitFor("a restart from the renewed budget", () => {
    const seen = runtime.inspect("one");
    return seen?.state === "running" && seen.restarts === 3;
  });
});

test("run.json is written again if it was damaged or deleted", async () => {
  const { runFile } = place.home;
  const runtime = runtimeOf([await program("store")]);
  await runtime.start();
  const written = readRunFile(runFile);
  for (const damage of [
    () => writeFileSync(runFile, "{"),
    () => rmSync(runFile),
  ]) {
    damage();
    runtime.keepRunFile();
    expect(readRunFile(runFile)).toEqual(written);
  }
});

test("all large logs are rotated, and one failure does not prevent the others", () => {
  const { logs } = place.home;
  const names = ["store.log", "echo-calls.jsonl", "supervisor.log"];
  for (const name of names) {
    writeFileSync(join(logs, name), "line\n");
    truncateSync(join(logs, name), 11 * 1024 * 1024);
  }
  const blocked = join(logs, "store.log.1");
  mkdirSync(blocked);
  const runtime = runtimeOf([]);
  expect(() => runtime.rotateLogs()).toThrow();
  rmSync(blocked, { recursive: true });
  const sizes = () => names.map((name) => sizeOf(join(logs, name)));
  expect(sizes()).toEqual([11 * 1024 * 1024, 0, 0]);
  runtime.rotateLogs();
  expect(sizes()).toEqual([0, 0, 0]);
  expect(sizeOf(join(logs, "echo-calls.jsonl.1"))).toBe(11 * 1024 * 1024);
});

test("a restart ends, too, when another is requested before the program is up", async () => {
  const sick = join(place.directory, "sick");
  const runtime = runtimeOf([await program("one", ["--sick-file", sick])]);
  await runtime.start();
  writeFileSync(sick, "");
  const first = runtime.restart("one", "check one is down", "supervisor");
  // It then waits for the new process instead of the end of the old one.
  await waitFor(
    "the new process",
    () => runtime.inspect("one")?.state === "starting",
  );
  const second = runtime.restart("one", "requested", "operator");
  rmSync(sick);
  await second;
  await first;
  expect(runtime.inspect("one")?.state).toBe("running");
});

test("a restart requested while a start is being completed ends with the new process", async () => {
  const isUp = Promise.withResolvers<void>();
  const completed = Promise.withResolvers<void>();
  const afterUp = (): Promise<void> => {
    isUp.resolve();
    return completed.promise;
  };
  const runtime = runtimeOf([await program("one", [], { afterUp })]);
  const started = runtime.start();
  await isUp.promise;
  const pid = pidOf(runtime, "one");
  const restarted = runtime.restart("one", "requested", "operator");
  completed.resolve();
  await restarted;
  await started;
  expect(runtime.inspect("one")?.state).toBe("running");
  expect(pidOf(runtime, "one")).not.toBe(pid);
});

test("a service that could not start again is not stopped, whoever requests the restart", async () => {
  let mistake: string | undefined;
  const validate = async () => {
    if (mistake !== undefined) {
      throw new Failure(mistake);
    }
  };
  const runtime = runtimeOf([await program("front", [], { validate })]);
  await runtime.start();
  const pid = pidOf(runtime, "front");
  mistake = "front.yaml:3: unknown setting";
  for (const by of ["operator", "supervisor"] as const) {
    await expect(runtime.restart("front", "test", by)).rejects.toThrow(mistake);
  }
  expect(runtime.inspect("front")).toMatchObject({ state: "running", pid });
  mistake = undefined;
  await runtime.restart("front", "test", "operator");
  expect(pidOf(runtime, "front")).not.toBe(pid);
});

test("if a service cannot start, its log explains the error and the others are stopped", async () => {
  const good = await program("good");
  const runtime = runtimeOf([good, await program("bad", ["--exit", "3"])]);
  await expect(runtime.start()).rejects.toThrow("exit requested by the test.");
  expect(runtime.list().map(({ state }) => state)).toEqual([
    "stopped",
    "stopped",
  ]);
  expect(
    await answersOk(good.address, AbortSignal.timeout(1000)).catch(() => false),
  ).toBe(false);
});

test("a program without informative output is reported with how it ended", async () => {
  const runtime = runtimeOf([
    await program("silent", ["--exit", "3"], { explain: () => [] }),
  ]);
  const failure: unknown = await runtime
    .start()
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(Failure);
  expect((failure as Failure).sentences).toEqual([
    'silent did not start (exit code 3, "hearth: exit requested by the test."): run `hearth logs silent`.',
  ]);
});

test("a program that ignores the stop signal is killed after its time limit", async () => {
  const runtime = runtimeOf([
    await program("deaf", ["--deaf"], { stopWithinMs: 100 }),
  ]);
  await runtime.start();
  const pid = pidOf(runtime, "deaf");
  await runtime.stop("test");
  expect(startTimeOf(pid)).toBeUndefined();
});

describe("after a supervisor was killed with -9", () => {
  let choices: readonly ProgramChoice[];
  let left: RunFile;

  beforeEach(async () => {
    choices = [
      {
        name: "one",
        port: await freePort(),
        args: ["--sick-file", join(place.directory, "sick")],
      },
      { name: "two", port: await freePort() },
    ];
    const supervisor = spawn(
      process.execPath,
      [
        join(projectRoot, "test", "supervisor", "small-supervisor.ts"),
        place.home.root,
        JSON.stringify(choices),
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    await once(supervisor.stdout, "data");
    supervisor.kill("SIGKILL");
    await once(supervisor, "exit");
    left = readRunFile(place.home.runFile);
  });

  afterEach(() => {
    for (const { pid, startTime } of Object.values(left.services)) {
      if (pid !== null && startTime !== null) {
        killGroup({ pid, startTime });
      }
    }
  });

  function specs(): readonly ServiceSpec[] {
    return choices.map((choice) => programSpec(place.directory, choice));
  }

  function leftPid(name: string): number {
    return left.services[name]?.pid ?? 0;
  }

  test("healthy programs are taken over without a restart and watched from then on", async () => {
    const runtime = runtimeOf(specs());
    await runtime.start();
    expect(
      runtime.list().map(({ name, pid, adopted }) => [name, pid, adopted]),
    ).toEqual([
      ["one", leftPid("one"), true],
      ["two", leftPid("two"), true],
    ]);
    process.kill(leftPid("two"), "SIGKILL");
    const view = await waitFor("the second to be started again", () => {
      const seen = runtime.inspect("two");
      return seen?.state === "running" && seen.restarts === 1 && seen;
    });
    expect(view.adopted).toBe(false);
    expect(pidOf(runtime, "one")).toBe(leftPid("one"));
  });

  test("programs are taken over and stopped although run.json cannot be written", async () => {
    const directory = join(place.directory, "state");
    const runFile = join(directory, "run.json");
    mkdirSync(directory);
    writeRunFile(runFile, left);
    const files = { logs: place.home.logs, runFile };
    const runtime = testRuntime(files, history, specs());
    runtimes.push(runtime);
    rmSync(directory, { recursive: true });
    await runtime.start();
    expect(pidOf(runtime, "one")).toBe(leftPid("one"));
    expect(pidOf(runtime, "two")).toBe(leftPid("two"));
    mkdirSync(directory);
    runtime.keepRunFile();
    expect(readRunFile(runFile).supervisor?.pid).toBe(process.pid);
    rmSync(directory, { recursive: true });
    await runtime.stop("test");
    expect(runtime.list().map(({ state }) => state)).toEqual([
      "stopped",
      "stopped",
    ]);
  });

  test("an unhealthy program is stopped and restarted", async () => {
    const sick = join(place.directory, "sick");
    writeFileSync(sick, "");
    const runtime = runtimeOf(specs());
    const starting = runtime.start();
    await waitFor(
      "the unhealthy one to end",
      () => startTimeOf(leftPid("one")) === undefined,
    );
    rmSync(sick);
    await starting;
    expect(pidOf(runtime, "one")).not.toBe(leftPid("one"));
    expect(pidOf(runtime, "two")).toBe(leftPid("two"));
  });

  test("a program started with other settings is stopped and restarted", async () => {
    choices = choices.map((choice) =>
      choice.name === "two"
        ? { ...choice, args: ["--sick-file", "/none"] }
        : choice,
    );
    const runtime = runtimeOf(specs());
    await runtime.start();
    expect(startTimeOf(leftPid("two"))).toBeUndefined();
    expect(pidOf(runtime, "one")).toBe(leftPid("one"));
  });

  test("so is one that could hand over, if the settings of its successor cannot be written", async () => {
    const { two } = left.services;
    const successorFile = join(place.directory, "missing", "successor.json");
    writeRunFile(place.home.runFile, {
      ...left,
      services: {
        ...left.services,
        ...(two && { two: { ...two, successorFile } }),
      },
    });
    choices = choices.map((choice) => ({
      ...choice,
      args: ["--sick-file", "/none"],
    }));
    const runtime = runtimeOf(specs());
    await runtime.start();
    expect(startTimeOf(leftPid("two"))).toBeUndefined();
    expect(runtime.list().map(({ state }) => state)).toEqual([
      "running",
      "running",
    ]);
  });

  test("a program that no longer belongs to the stack is stopped", async () => {
    const runtime = runtimeOf(specs().slice(0, 1));
    await runtime.start();
    expect(startTimeOf(leftPid("two"))).toBeUndefined();
  });

  test("a process id that was reused by another program is left alone", async () => {
    const [one] = specs();
    const entry = left.services["one"];
    if (one === undefined || entry === undefined) {
      throw new Error("no program");
    }
    process.kill(leftPid("one"), "SIGKILL");
    process.kill(leftPid("two"), "SIGKILL");
    writeRunFile(place.home.runFile, {
      supervisor: null,
      services: { one: { ...entry, pid: process.pid, startTime: "long ago" } },
    });
    const runtime = runtimeOf([one]);
    await waitFor("the port to be free", () => isFree(one.port));
    await runtime.start();
    expect(runtime.inspect("one")?.adopted).toBe(false);
  });
});

test("run.json has fingerprints of the provider keys that a program was started with, not the keys", async () => {
  const env = { OPENAI_API_KEY: "sk-of-the-start", TZ: "UTC" };
  const one = await program("one");
  const runtime = runtimeOf([{ ...one, plan: () => ({ ...one.plan(), env }) }]);
  await runtime.start();
  const { services } = readRunFile(place.home.runFile);
  expect(Object.keys(services["one"]?.keys ?? {})).toEqual(["OPENAI_API_KEY"]);
  expect(readFileSync(place.home.runFile, "utf8")).not.toContain("sk-of-the");
});

const disk = createSmallDisk(64);

test.skipIf(disk === undefined)(
  "on a full disk a program is restarted beyond its budget and stopped on demand, and run.json names it; a lost one is written when there is space",
  async () => {
    const { path, fill, free, remove } = disk ?? expect.fail();
    const home = { logs: path, runFile: join(path, "run.json") };
    let fails = false;
    const prepare = async () => {
      if (fails) {
        throw new Failure("no space is left on the disk.");
      }
    };
    const one = await program("one", [], { prepare });
    const runtime = testRuntime(home, history, [one], 1);
    const pidInFile = () => readRunFile(home.runFile).services["one"]?.pid;
    try {
      await runtime.start();
      const first = pidOf(runtime, "one");
      fill();
      fails = true;
      process.kill(first, "SIGKILL");
      await waitFor("tries beyond the budget", () => {
        fill();
        return (runtime.inspect("one")?.restarts ?? 0) > 3;
      });
      fails = false;
      await waitFor("a start", () => {
        fill();
        return runtime.inspect("one")?.state === "running";
      });
      await waitFor("run.json to name it", () => {
        return pidInFile() === pidOf(runtime, "one");
      });
      rmSync(home.runFile);
      fill();
      runtime.keepRunFile();
      expect(pidInFile()).toBeUndefined();
      free();
      runtime.keepRunFile();
      expect(pidInFile()).toBe(pidOf(runtime, "one"));
      fill();
      await runtime.stop("test");
      expect(runtime.inspect("one")?.state).toBe("stopped");
    } finally {
      free();
      await runtime.stop("test ended");
      remove();
    }
  },
);
