import { expect, test } from "vitest";
import type { ActiveAlarm } from "./alerts/alerting.ts";
import type { CheckView } from "./checks/watched.ts";
import type { ServiceView } from "./runtimes/runtime.ts";
import { serviceView } from "../test/supervisor/service-view.ts";
import { findAttention } from "./status.ts";
import { judge } from "./verdict.ts";

function check(name: string, more: Partial<CheckView> = {}): CheckView {
  return {
    name,
    kind: "http",
    state: "down",
    since: 0,
    inhibitedBy: null,
    flapping: false,
    latest: {
      ok: false,
      level: "down",
      latencyMs: 1,
      text: "no answer within 10 s",
      at: 0,
      measures: {},
    },
    healing: null,
    note: null,
    service: null,
    ...more,
  };
}

test("the next step for a pod is a command of Kubernetes", () => {
  const command = "kubectl describe pod a --namespace hearth";
  const commands = (["ended", "unknown"] as const).map(
    (state) =>
      findAttention([{ ...serviceView("a", state), command }], [], [], [])[0]
        ?.command,
  );
  expect(commands).toEqual([`hearth logs a; ${command}`, command]);
});

test("an API that does not answer is one warning, from its check and in place of the pods", () => {
  const alarm = {
    fingerprint: "check:kubernetes",
    level: "warning",
    subject: "kubernetes",
    text: "kubernetes needs attention",
    command: "hearth check kubernetes",
    since: 0,
    silence: null,
  } as ActiveAlarm;
  const found = findAttention(
    [serviceView("kubernetes", "unknown")],
    [check("kubernetes")],
    [alarm],
    [],
  );
  expect(found.map(({ name, level }) => `${name} ${level}`)).toEqual([
    "kubernetes warning",
  ]);
});

test.each<[readonly ServiceView[], readonly CheckView[], string]>([
  [
    [serviceView("gateway", "running")],
    [check("gateway", { state: "up" })],
    "All is well.",
  ],
  [[serviceView("gateway", "starting")], [], "Gateway is not up yet."],
  [[serviceView("gateway", "backing-off")], [], "Gateway is down."],
  [
    [serviceView("postgres", "gave-up")],
    [check("gateway-ready", { inhibitedBy: "postgres" })],
    "Postgres is down.",
  ],
  [
    [serviceView("gateway", "gave-up"), serviceView("notes", "running")],
    [check("notes"), check("gateway")],
    "Gateway and notes are down.",
  ],
  [[serviceView("gateway", "ended")], [], "Gateway is down."],
  [[serviceView("redis", "absent")], [], "Redis is down."],
  [
    [serviceView("edge", "unknown"), serviceView("redis", "unknown")],
    [],
    "Edge and redis need attention.",
  ],
])("the verdict on %j and %j", (services, checks, verdict) => {
  const attention = findAttention(services, checks, [], []);
  const judged = judge("running", services, attention, []);
  expect(judged.verdict).toBe(verdict);
  expect(judged.ok).toBe(verdict === "All is well.");
});

test("a problem is displayed with its output, the attempted fixes, and the next command", () => {
  expect(
    findAttention(
      [serviceView("postgres", "gave-up")],
      [check("notes", { healing: "gave up: restarted 3 times in 1 h" })],
      [],
      [],
    ),
  ).toEqual([
    {
      name: "postgres",
      about: { topic: "service", id: "postgres" },
      level: "down",
      since: 0,
      text: "postgres is down: killed by SIGKILL",
      command: "hearth logs postgres; hearth restart postgres",
      output: null,
      tried: [],
      silenced: null,
    },
    {
      name: "notes",
      about: { topic: "service", id: "notes" },
      level: "down",
      since: 0,
      text: "check notes is down: no answer within 10 s; gave up: restarted 3 times in 1 h",
      command: "hearth check notes",
      output: null,
      tried: [],
      silenced: null,
    },
  ]);
});

const drill: ActiveAlarm = {
  fingerprint: "job:restore-drill",
  level: "warning",
  subject: "restore-drill",
  text: "the copy ends after 61 of 204 MB",
  output: "unexpected end",
  tried: ["tried 3 times"],
  command: "hearth backup verify notes",
  since: 5,
  silence: null,
};

test("alarms need attention, too; services that are down come before warnings", () => {
  const down: ActiveAlarm = {
    ...drill,
    fingerprint: "check:notes",
    level: "down",
    subject: "notes",
    text: "notes is down since 10:02",
    silence: { id: "1", pattern: "*", why: "moving", from: 0, until: 9 },
  };
  expect(findAttention([], [check("notes")], [drill, down], [])).toMatchObject([
    {
      name: "notes",
      text: "notes is down since 10:02",
      silenced: { until: 9, why: "moving" },
    },
    {
      name: "restore-drill",
      text: "restore-drill: the copy ends after 61 of 204 MB",
      output: "unexpected end",
      tried: ["tried 3 times"],
      silenced: null,
    },
  ]);
});

test("with warnings only, the overall state is healthy", () => {
  const attention = findAttention([], [], [drill], []);
  expect(
    judge("running", [serviceView("notes", "running")], attention, []),
  ).toEqual({
    ok: true,
    verdict: "One thing needs attention; every service answers.",
  });
});

test("a check that failed once is neither well nor down, unless its failure is excused", () => {
  const gateway = check("gateway", { state: "pending" });
  const verdictOf = (change: Partial<CheckView>) =>
    judge("running", [], [], [{ ...gateway, ...change }]);
  expect(verdictOf({})).toEqual({
    ok: false,
    verdict: "Gateway failed the last check and is being checked again.",
  });
  for (const excused of [
    { note: "gateway was just started" },
    { inhibitedBy: "postgres" },
    { latest: { ...gateway.latest!, level: "warning" } },
  ] as const) {
    expect(verdictOf(excused)).toEqual({ ok: true, verdict: "All is well." });
  }
});

test("the heading counts what the list has: two findings about one vault are two", () => {
  const attention = findAttention([], [], [drill], []);
  const twice = [...attention, ...attention];
  expect(judge("running", [], twice, []).verdict).toBe(
    "Two things need attention; every service answers.",
  );
  const more = [...twice, ...attention.map((each) => ({ ...each, count: 9 }))];
  expect(judge("running", [], more, []).verdict).toBe(
    "11 things need attention; every service answers.",
  );
});

test.each([
  ["check:disk", "disk", { topic: "service", id: "disk" }],
  ["healing:gateway", "gateway", { topic: "service", id: "gateway" }],
  [
    "job:restore-drill",
    "job restore-drill",
    { topic: "job", id: "restore-drill" },
  ],
  ["notes-seed:home", "vault home", { topic: "vault", id: "home" }],
  ["notes-growth", "notes", { topic: "vault", id: null }],
  ["soft-budget:team", "team a", { topic: "key", id: null }],
  ["watchdog", "watchdog", { topic: "supervisor", id: null }],
])("the alarm %s is about its subject", (fingerprint, subject, about) => {
  const [found] = findAttention(
    [],
    [],
    [{ ...drill, fingerprint, subject }],
    [],
  );
  expect(found?.about).toEqual(about);
});

test("all is well only while every model is known to answer", () => {
  const verdictWith = (state: CheckView["state"]) =>
    judge(
      "running",
      [serviceView("notes", "running")],
      [],
      [check("models", { kind: "models", state })],
    ).verdict;
  expect(verdictWith("up")).toBe("All is well.");
  for (const state of ["new", "pending", "paused", "maintenance"] as const) {
    expect(verdictWith(state)).toBe(
      "Everything is running; some models have not been checked yet.",
    );
  }
});

test("findings without an alarm count as well, unless an alarm concerns the same thing", () => {
  const [ofAlarm] = findAttention([], [], [drill], []);
  const conflict = {
    ...ofAlarm!,
    name: "vault notes",
    text: "vault notes has 1 note in conflict",
  };
  const same = { ...conflict, name: drill.subject };
  expect(
    findAttention([], [], [drill], [conflict, same]).map(({ name }) => name),
  ).toEqual([drill.subject, "vault notes"]);
});
