import { expect, test } from "vitest";
import type { CheckView } from "../../../supervisor/checks/watched.ts";
import type { ServiceStatus, Status } from "../../../supervisor/status.ts";
import { describeEntry } from "./history-words.ts";
import {
  findKnown,
  isInMotion,
  relationsOf,
  verdictOf,
} from "./service-view.ts";

const AT = 1_800_000_000_000;

function check(name: string, change: Partial<CheckView> = {}): CheckView {
  return {
    name,
    kind: "http",
    state: "up",
    since: AT - 60_000,
    inhibitedBy: null,

    flapping: false,
    latest: null,
    healing: null,
    note: null,
    service: null,
    ...change,
  };
}

function service(
  name: string,
  change: Partial<ServiceStatus> = {},
): ServiceStatus {
  return {
    name,
    state: "running",
    since: AT - 120_000,
    pid: 7,
    port: 1,

    address: "http://127.0.0.1:1",
    adopted: false,
    tookMs: 1,
    restarts: 0,
    reason: null,
    stats: null,
    ...change,
  };
}

function pod(notReadySince: number | null): ServiceStatus["pod"] {
  return {
    uid: "a",
    node: "node-1",
    component: "notes",
    containers: [],
    notReadySince,
    isStuck: false,
    lastEnd: null,
    restartCommand: null,
  };
}

test.each([
  [check("notes"), undefined, "Notes has been up for 1 min.", "ok"],
  [
    check("notes", { state: "down" }),
    undefined,
    "Notes has been down for 1 min.",
    "bad",
  ],
  [
    check("notes", { state: "down", inhibitedBy: "postgres" }),
    undefined,
    "Notes is waiting for postgres.",
    "rest",
  ],
  [
    check("notes", { state: "paused", note: "I move it" }),
    undefined,
    "Notes is paused: I move it.",
    "rest",
  ],
  [
    check("notes", { state: "maintenance", note: "new disk" }),
    undefined,
    "Notes is in maintenance: new disk.",
    "rest",
  ],
  [
    check("notes", { service: "notes" }),
    service("notes", { state: "gave-up" }),
    "Notes gave up.",
    "bad",
  ],
  [
    undefined,
    service("notes", { state: "backing-off" }),
    "Notes is restarting.",
    "bad",
  ],
  [undefined, service("notes"), "Notes has been up for 2 min.", "ok"],
  [
    undefined,
    service("notes", { pod: pod(AT - 30_000) }),
    "Notes has been not ready for 30 s.",
    "warn",
  ],
  [
    undefined,
    service("notes", { pod: pod(null) }),
    "Notes has been up for 2 min.",
    "ok",
  ],
] as const)("the verdict is a sentence (%#)", (seen, running, title, look) => {
  const known = { check: seen, service: running };
  expect(verdictOf("notes", known, AT)).toEqual({ title, look });
});

test("a check includes its service, a service its own name", () => {
  const status = {
    checks: [check("gateway-ready", { service: "gateway" })],
    services: [service("gateway")],
  } as unknown as Status;
  expect(findKnown(status, "gateway-ready")?.service?.name).toBe("gateway");
  expect(findKnown(status, "gateway")?.check).toBeUndefined();
  expect(findKnown(status, "toString")).toBeUndefined();
});

test("a check is related to its dependencies, its dependents, and the other checks of its service", () => {
  const gateway = service("gateway");
  const ready = check("gateway-ready", { service: "gateway" });
  const status = {
    at: AT,
    checks: [
      ready,
      check("gateway-alive", { service: "gateway" }),
      check("postgres", { state: "down" }),
      check("edge"),
      check("disk"),
    ],
    services: [gateway],
  } as unknown as Status;
  const checks = [
    { name: "gateway-ready", depends_on: ["postgres", "gone"] },
    { name: "edge", depends_on: ["gateway-ready"] },
    { name: "disk", depends_on: [] },
  ] as unknown as Parameters<typeof relationsOf>[0]["checks"];
  const namesOf = (name: string, known: Parameters<typeof relationsOf>[1]) =>
    relationsOf({ name, checks, status }, known).map(({ label, others }) => [
      label,
      others.map((other) => `${other.name} ${other.look}`),
    ]);
  expect(namesOf("gateway-ready", { check: ready, service: gateway })).toEqual([
    ["Depends on", ["postgres bad", "gone none"]],
    ["Required by", ["edge ok"]],
    ["Other checks of this service", ["gateway-alive ok"]],
    ["Checks the service", ["gateway ok"]],
  ]);
  expect(namesOf("disk", { check: check("disk"), service: undefined })).toEqual(
    [],
  );
});

test("only changing states refresh quickly", () => {
  expect(isInMotion({ check: check("a"), service: service("a") })).toBe(false);
  expect(
    isInMotion({
      check: undefined,
      service: service("a", { state: "starting" }),
    }),
  ).toBe(true);
  expect(
    isInMotion({ check: check("a", { state: "pending" }), service: undefined }),
  ).toBe(true);
});

test("the history shows changes with their cause and actions in words", () => {
  const entry = {
    at: AT,
    kind: "check",
    name: "a",
    from: "up",
    to: "down",
    reason: "answered 500",
  } as const;
  expect(describeEntry(entry, "UTC")).toMatchObject({
    look: "bad",
    text: "up → down",
    reason: "answered 500",
  });
  expect(
    describeEntry({ ...entry, kind: "act", from: null, to: "heal" }, "UTC")
      .text,
  ).toBe("restarted by a heal rule");
});
