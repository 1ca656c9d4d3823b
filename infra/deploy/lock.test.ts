import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cancelVerb } from "./cancel-verb.ts";
import { readLock, rejectLocked } from "./lock.ts";
import { isEngine } from "./processes.ts";
import type { Session } from "./session.ts";

let directory: string;
let engine: ChildProcess;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "hearth-lock-"));
  engine = spawn("bash", ["-c", "exec -a pulumi sleep 300"]);
  await once(engine, "spawn");
  // Until bash is replaced.
  await expect.poll(() => isEngine(engine.pid ?? 0)).toBe(true);
});
afterEach(() => {
  engine.kill("SIGKILL");
  rmSync(directory, { recursive: true });
});

/** A session on a stack with this lock, and the calls of its engine. */
function locked(
  pid: number | undefined,
  host = hostname(),
  content?: string,
): { readonly session: Session; readonly requests: readonly string[] } {
  const locks = join(directory, ".pulumi/locks/organization/hearth/home");
  mkdirSync(locks, { recursive: true });
  const timestamp = "2026-11-27T22:00:00Z";
  writeFileSync(
    join(locks, "5f.json"),
    content ?? JSON.stringify({ pid, hostname: host, timestamp }),
  );
  const requests: string[] = [];
  const stack = {
    name: "home",
    workspace: {
      workDir: directory,
      whoAmI: async () => ({ url: `file://${directory}` }),
    },
    cancel: async () => void requests.push("cancel"),
    exportStack: async () => ({ deployment: {} }),
  } as unknown as Stack;
  const session = { stack, say: () => undefined } as unknown as Session;
  return { session, requests };
}

test("a run is rejected while another one holds the lock, with what to do", async () => {
  const { session } = locked(engine.pid);
  await expect(rejectLocked(session)).rejects.toThrow(
    `the stack is locked by a run of 2026-11-27T22:00:00Z (process ${engine.pid} on ${hostname()}); nothing was changed: wait for it to end, then run the same command again.`,
  );
  engine.kill("SIGKILL");
  await once(engine, "exit");
  await expect(rejectLocked(session)).rejects.toThrow(
    "that run was killed; run `npm run deploy -- cancel`, then the same command again.",
  );
  await expect(
    rejectLocked(locked(engine.pid, "laptop").session),
  ).rejects.toThrow(/on laptop\); nothing was changed: wait for it to end; if/);
  rmSync(join(directory, ".pulumi"), { recursive: true });
  await rejectLocked(session);
});

test("cancel is rejected while the run that holds the lock is running", async () => {
  const { session, requests } = locked(engine.pid);
  await expect(cancelVerb(session, 0)).rejects.toThrow(
    `the run that locks the stack is still running (process ${engine.pid}); nothing was changed: wait for it to end, or end it with Ctrl-C or \`kill ${engine.pid}\`, then run cancel again.`,
  );
  expect(requests).toEqual([]);
});

test("cancel waits for a run that is ending", async () => {
  const { session, requests } = locked(engine.pid);
  const done = cancelVerb(session);
  engine.kill("SIGKILL");
  expect(await done).toBe(0);
  expect(requests).toEqual(["cancel"]);
});

test("a lock whose process has ended, or is another program now, is released", async () => {
  engine.kill("SIGKILL");
  await once(engine, "exit");
  for (const pid of [engine.pid, process.pid]) {
    const { session, requests } = locked(pid);
    expect(await readLock(session)).toMatchObject({ pid, holder: "ended" });
    expect(await cancelVerb(session)).toBe(0);
    expect(requests).toEqual(["cancel"]);
  }
});

test("a lock of another machine is released, since its process is not known here", async () => {
  const { session, requests } = locked(engine.pid, "laptop");
  expect((await readLock(session))?.holder).toBe("on another machine");
  expect(await cancelVerb(session)).toBe(0);
  expect(requests).toEqual(["cancel"]);
});

test("a lock that a power failure left empty is named, and released by cancel", async () => {
  const { session, requests } = locked(undefined, undefined, "");
  await expect(rejectLocked(session)).rejects.toThrow(
    "the stack is locked by a run that left an empty lock, such as after a power failure; nothing was changed: that run was killed; run `npm run deploy -- cancel`, then the same command again.",
  );
  expect(await cancelVerb(session)).toBe(0);
  expect(requests).toEqual(["cancel"]);
});
