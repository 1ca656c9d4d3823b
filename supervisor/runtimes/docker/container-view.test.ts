import { expect, test } from "vitest";
import {
  inspected,
  type SmallContainer,
} from "../../../test/supervisor/small-engine.ts";
import { containerName, readContainer, readNames } from "./container-view.ts";

const supervisedSince = Date.parse("2026-06-01T00:00:00Z");
const started = Date.parse("2026-01-02T03:04:05.678Z");
const FINISHED = "2026-02-03T04:05:06.789Z";

function view(container: SmallContainer) {
  return readContainer(
    JSON.stringify(inspected("hearth-gateway", container)),
    supervisedSince,
    "hearth",
  );
}

test("a healthy container", () => {
  expect(view({ restarts: 2 })).toEqual({
    name: "gateway",
    state: "running",
    since: started,
    pid: 4711,
    address: "10.8.0.1:4001",
    port: 4001,
    adopted: true,
    tookMs: null,
    restarts: 2,
    reason: null,
    container: {
      id: "id-of-hearth-gateway",
      image: "sha256:image",
      status: "running",
      health: "healthy",
      healthOutput: "ok",
      startedAt: started,
      exitCode: null,
      oomKilled: false,
    },
  });
});

test.each<[string, Record<string, unknown>, string, string | null]>([
  ["created", { Status: "created" }, "starting", null],
  ["healthy not yet", { Health: { Status: "starting" } }, "starting", null],
  ["without a health check", { Health: null }, "running", null],
  [
    "unhealthy",
    {
      Health: {
        Status: "unhealthy",
        Log: [{ ExitCode: 1, Output: "first\nno answer\n" }],
      },
    },
    "running",
    "unhealthy: no answer",
  ],
  [
    "paused",
    { Status: "paused" },
    "stopped",
    "paused by hand: run `docker unpause`",
  ],
  ["removing", { Status: "removing" }, "stopping", null],
  [
    "restarting",
    { Status: "restarting", ExitCode: 3, FinishedAt: FINISHED },
    "backing-off",
    "ended with exit code 3; Docker is restarting it",
  ],
  [
    "exited",
    { Status: "exited", Pid: 0, ExitCode: 137, FinishedAt: FINISHED },
    "ended",
    "ended with exit code 137",
  ],
  [
    "never started",
    {
      Status: "exited",
      ExitCode: 128,
      FinishedAt: FINISHED,
      Error: "port is taken",
    },
    "ended",
    "ended with exit code 128 (port is taken)",
  ],
  [
    "out of memory",
    { Status: "exited", ExitCode: 137, FinishedAt: FINISHED, OOMKilled: true },
    "ended",
    "killed: out of memory",
  ],
  [
    "dead",
    { Status: "dead", FinishedAt: FINISHED },
    "ended",
    "ended with exit code 0",
  ],
])("a container that is %s", (_what, state, expected, reason) => {
  const found = view({ state });
  expect(found?.state).toBe(expected);
  expect(found?.reason).toBe(reason);
  expect(found?.since).toBe(
    expected === "ended" || expected === "backing-off"
      ? Date.parse(FINISHED)
      : started,
  );
});

test("a container without our label is ignored, whatever its name", () => {
  expect(view({ labels: {} })).toBeUndefined();
});

test("services have the same names as with `hearth up`", () => {
  const names = ["/hearth-couchdb", "/hearth-gateway", "/other-redis"];
  const answer = JSON.stringify(names.map((name) => ({ Names: [name] })));
  expect(readNames(answer, "hearth")).toEqual(["gateway", "notes"]);
  expect(readNames(answer, "other")).toEqual(["redis"]);
  expect(containerName("notes", "hearth")).toBe("hearth-couchdb");
  expect(containerName("redis", "other")).toBe("other-redis");
});
