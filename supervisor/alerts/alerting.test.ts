import { afterEach, beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { openHistory, type History } from "../history/history.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { openAlarmStore } from "./alarm-store.ts";
import type { Alarm } from "./alarm.ts";
import { Alerting } from "./alerting.ts";
import { textOf, titleOf, type AlertMessage } from "./message.ts";
import type { Sink } from "./sinks/sink.ts";

let place: ReturnType<typeof temporaryHome>;
let history: History;
let alerting: Alerting;
let now: number;
let sent: { readonly to: string; readonly message: AlertMessage }[];
let broken: Set<string>;
let notices: string[];

beforeEach(() => {
  place = temporaryHome();
  now = Date.UTC(2026, 10, 21, 10);
  sent = [];
  broken = new Set();
  notices = [];
  begin();
});
afterEach(async () => {
  await alerting.stop();
  history.close();
  place.remove();
});

function sink(name: string, fallback: boolean = false): Sink {
  return {
    name,
    remindMs: 4 * HOUR_MS,
    fallback,
    send: async (message) => {
      if (broken.has(name)) {
        throw new Error("answered 500");
      }
      sent.push({ to: name, message });
    },
  };
}

function begin(sinks: readonly Sink[] = [sink("phone")]): void {
  history = openHistory(`${place.directory}/history.db`);
  alerting = new Alerting({
    store: openAlarmStore(history.db),
    sinks,
    host: "a",
    timeZone: "Europe/Berlin",
    consoleUrl: "https://console.example.org",
    now: () => now,
    onNotice: (sentence) => notices.push(sentence),
  });
}

/** The state on disk after a kill -9. */
async function beginAgain(sinks?: readonly Sink[]): Promise<void> {
  await alerting.stop();
  history.close();
  begin(sinks);
}

function alarm(subject: string, change: Partial<Alarm> = {}): Alarm {
  return {
    fingerprint: `check:${subject}`,
    level: "down",
    subject,
    text: "answered 500",
    command: `hearth check ${subject}`,
    ...change,
  };
}

/** Advances the clock in steps of one second, like the supervisor. */
async function pass(seconds: number, step: number = 1): Promise<void> {
  for (let at = 0; at < seconds; at += step) {
    now += step * 1000;
    await alerting.advance();
  }
}

function messages(): readonly string[] {
  return sent.map(({ to, message }) => `${to}: ${titleOf(message)}`);
}

test("alarms within 30 s are grouped into one message, their ends into another", async () => {
  alerting.raise(alarm("gateway"));
  await pass(10);
  alerting.raise(alarm("postgres"));
  alerting.raise(alarm("disk", { level: "warning" }));
  await pass(19);
  expect(messages()).toEqual([]);
  await pass(2);
  expect(messages()).toEqual([
    "phone: ✕ gateway and postgres are down; disk needs attention (a)",
  ]);
  // In the zone of the jobs, independent of the process's zone.
  expect(textOf(sent[0]!.message)).toContain("since 21 Nov, 11:00 CET (");
  alerting.clear("check:gateway");
  alerting.clear("check:disk");
  await pass(31);
  expect(messages().slice(1)).toEqual([
    "phone: ● gateway and disk recovered (a)",
  ]);
  expect(alerting.active().map(({ subject }) => subject)).toEqual(["postgres"]);
});

test("raising an active alarm updates its text without a notification; clearing an inactive one does nothing", async () => {
  alerting.raise(alarm("gateway"));
  await pass(31);
  alerting.raise(alarm("gateway", { text: "no answer within 10 s" }));
  alerting.clear("check:nothing");
  await pass(HOUR_MS / 1000, 60);
  expect(sent).toHaveLength(1);
  expect(alerting.active()[0]).toMatchObject({ text: "no answer within 10 s" });
});

test("an alarm that ends before its group is sent is not reported", async () => {
  alerting.raise(alarm("gateway"));
  await pass(20);
  alerting.clear("check:gateway");
  await pass(120);
  expect(sent).toEqual([]);
});

test("an alarm that is raised again before its end was reported is one incident", async () => {
  alerting.raise(alarm("gateway"));
  await pass(31);
  for (let round = 0; round < 5; round += 1) {
    alerting.clear("check:gateway");
    await pass(10);
    alerting.raise(alarm("gateway"));
    await pass(10);
  }
  expect(sent).toHaveLength(1);
});

test("a lasting alarm is reported again after four hours", async () => {
  alerting.raise(alarm("gateway"));
  await pass(31);
  await pass((4 * HOUR_MS) / 1000 - 60, 30);
  expect(sent).toHaveLength(1);
  await pass(120, 30);
  expect(sent[1]?.message.events[0]?.event).toBe("reminder");
  await pass((4 * HOUR_MS) / 1000, 30);
  expect(sent).toHaveLength(3);
});

test("a notice is reported once, without an end, and is not an open alarm", async () => {
  alerting.raise(alarm("key ann", { level: "notice" }));
  await pass(31);
  expect(messages()).toEqual(["phone: ○ notice about key ann (a)"]);
  expect(alerting.active()).toEqual([]);
  await pass((5 * HOUR_MS) / 1000, 60);
  alerting.raise(alarm("key ann", { level: "notice" }));
  alerting.clear("check:key ann");
  await pass(60);
  expect(sent).toHaveLength(1);
  expect(alerting.history(2)).toHaveLength(1);
});

test("the end of a notice is not reported after a restart either", async () => {
  alerting.raise(alarm("key ann", { level: "notice" }));
  await pass(60);
  alerting.clear("check:key ann");
  await beginAgain();
  await pass(60);
  expect(messages()).toEqual(["phone: ○ notice about key ann (a)"]);
});

test("replacing alarms ends the others of the same prefix, also those of the previous process", async () => {
  const found = ["a", "b"].map((name) =>
    alarm(name, { fingerprint: `model:${name}` }),
  );
  alerting.raise(alarm("gateway"));
  alerting.replace("model:", found);
  await beginAgain();
  alerting.replace("model:", found.slice(1));
  expect(alerting.active().map(({ subject }) => subject)).toEqual([
    "gateway",
    "b",
  ]);
});

test("an owner gets own alarms and their ends, but no reminders, no commands and no address of the console", async () => {
  await beginAgain([{ ...sink("mail"), owners: true }]);
  alerting.raise(alarm("gateway"));
  alerting.raise(alarm("key ann", { owner: "ann@example.org" }));
  await pass(31);
  await pass((5 * HOUR_MS) / 1000, 60);
  alerting.clear("check:key ann");
  await pass(60);
  expect(sent.map(({ message }) => [message.owner, titleOf(message)])).toEqual([
    [undefined, "✕ gateway and key ann are down (a)"],
    ["ann@example.org", "✕ key ann is down (a)"],
    [undefined, "✕ gateway and key ann are down (a)"],
    [undefined, "● key ann recovered (a)"],
    ["ann@example.org", "● key ann recovered (a)"],
  ]);
  expect(sent[0]?.message.consoleUrl).toBe("https://console.example.org");
  expect(sent[1]?.message.consoleUrl).toBeUndefined();
  expect(textOf(sent[0]!.message)).toContain("next step");
  expect(textOf(sent[1]!.message)).not.toContain("next step");
});

test("a silenced alarm is displayed without notifications; after the silence it is reported", async () => {
  const silence = alerting.silence("gate*", 2 * HOUR_MS, "new disk");
  alerting.raise(alarm("gateway"));
  alerting.raise(alarm("notes"));
  await pass(60);
  expect(messages()).toEqual(["phone: ✕ notes is down (a)"]);
  expect(alerting.active()[0]).toMatchObject({
    subject: "gateway",
    silence: { why: "new disk" },
  });
  await beginAgain();
  expect(alerting.silences()).toEqual([silence]);
  await pass(60);
  expect(sent).toHaveLength(1);
  await pass((2 * HOUR_MS) / 1000, 60);
  expect(messages().slice(1)).toEqual(["phone: ✕ gateway is down (a)"]);
  expect(alerting.silences()).toEqual([]);
});

test("a silence can be ended early by its pattern or id", async () => {
  alerting.silence("gateway", HOUR_MS, "one");
  const other = alerting.silence("job:*", HOUR_MS, "two");
  expect(alerting.endSilences("gateway")).toHaveLength(1);
  expect(alerting.endSilences("gateway")).toEqual([]);
  expect(alerting.endSilences(other.id)).toHaveLength(1);
  alerting.raise(alarm("gateway"));
  await pass(31);
  expect(sent).toHaveLength(1);
});

test("recipients of an alarm are notified of its end, even during a silence", async () => {
  alerting.raise(alarm("gateway"));
  await pass(31);
  alerting.silence("gateway", HOUR_MS, "being fixed");
  alerting.clear("check:gateway");
  await pass(31);
  expect(messages()[1]).toBe("phone: ● gateway recovered (a)");
});

test("raised, reported and undelivered alarms persist across a restart", async () => {
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(31);
  expect(alerting.sinks()[0]).toMatchObject({
    waiting: 1,
    trouble: "answered 500",
  });
  await beginAgain();
  broken.clear();
  await pass(60);
  expect(messages()).toEqual(["phone: ✕ gateway is down (a)"]);
  await beginAgain();
  alerting.raise(alarm("gateway"));
  await pass(60);
  expect(sent).toHaveLength(1);
  alerting.clear("check:gateway");
  await beginAgain();
  await pass(60);
  expect(messages()[1]).toBe("phone: ● gateway recovered (a)");
});

test("a failed delivery is retried with growing delays and in order", async () => {
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(31);
  alerting.raise(alarm("notes"));
  await pass(600, 5);
  broken.clear();
  await pass(600, 5);
  expect(messages()).toEqual([
    "phone: ✕ gateway is down (a)",
    "phone: ✕ notes is down (a)",
  ]);
  expect(alerting.sinks()[0]).toMatchObject({ waiting: 0, trouble: null });
});

test("after three failures the fallback gets the message, and the other sinks an alarm about the failed one", async () => {
  await beginAgain([sink("phone"), sink("chat"), sink("mail", true)]);
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(120);
  expect(messages()).toEqual([
    "chat: ✕ gateway is down (a)",
    "mail: ✕ gateway is down (a)",
    "chat: ▲ alerts by phone needs attention (a)",
  ]);
  expect(alerting.sinks()[0]?.waiting).toBe(0);
  broken.clear();
  alerting.clear("check:gateway");
  await pass(120);
  expect(messages().slice(3)).toEqual([
    "phone: ● gateway recovered (a)",
    "chat: ● gateway recovered (a)",
    "chat: ● alerts by phone recovered (a)",
  ]);
});

test("the alarm about a failed sink ends with its first delivery after a restart", async () => {
  const sinks = [sink("phone"), sink("chat")];
  await beginAgain(sinks);
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(120);
  expect(alerting.active().map(({ fingerprint }) => fingerprint)).toEqual([
    "check:gateway",
    "sink:phone",
  ]);
  await beginAgain(sinks);
  broken.clear();
  await pass(120);
  expect(alerting.active().map(({ fingerprint }) => fingerprint)).toEqual([
    "check:gateway",
  ]);
});

test("without a fallback a message is dropped after a day, with a notice", async () => {
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(31);
  await pass((25 * HOUR_MS) / 1000, 300);
  expect(notices.some((text) => text.includes("was dropped"))).toBe(true);
});

test("a sink that is no longer configured leaves no state behind", async () => {
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(120);
  expect(alerting.active()).toHaveLength(2);
  await beginAgain([sink("chat")]);
  await pass(60);
  expect(messages()).toEqual(["chat: ✕ gateway is down (a)"]);
  expect(alerting.active()).toHaveLength(1);
  const open = alerting.history(10).filter((each) => each.clearedAt === null);
  expect(open.map((each) => each.alarm.subject)).toEqual(["gateway"]);
});

test("an alarm is reported even if the history cannot be written", async () => {
  history.db.exec("DROP TABLE alarms; DROP TABLE alert_outbox");
  alerting.raise(alarm("gateway"));
  await pass(31);
  expect(messages()).toEqual(["phone: ✕ gateway is down (a)"]);
  expect(notices[0]).toContain("no such table");
});

test("a test message is sent through every sink immediately, including sinks with a pending retry", async () => {
  await beginAgain([sink("phone"), sink("mail", true)]);
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(31);
  broken.clear();
  const states = await alerting.test();
  expect(states.map(({ trouble }) => trouble)).toEqual([null, null]);
  expect(messages().toSorted()).toEqual([
    "mail: ▲ test needs attention (a)",
    "phone: ▲ test needs attention (a)",
    "phone: ✕ gateway is down (a)",
  ]);
});

test("a test message is sent through the named sink only", async () => {
  await beginAgain([sink("phone"), sink("mail", true)]);
  await alerting.test("mail");
  expect(messages()).toEqual(["mail: ▲ test needs attention (a)"]);
});

test("the history has active and past alarms, newest first", () => {
  alerting.raise(alarm("gateway"));
  now += HOUR_MS;
  alerting.raise(alarm("notes"));
  alerting.clear("check:gateway");
  expect(
    alerting
      .history(10)
      .map((each) => [each.alarm.subject, each.raisedAt, each.clearedAt]),
  ).toEqual([
    ["notes", now, null],
    ["gateway", now - HOUR_MS, now],
  ]);
  expect(alerting.history(1)).toHaveLength(1);
});

test("a sink that hangs delays neither the others nor the shutdown; its message is kept", async () => {
  const hangs: Sink = { ...sink("mail"), send: () => new Promise(() => {}) };
  await beginAgain([hangs, sink("phone")]);
  alerting.raise(alarm("gateway"));
  now += 31_000;
  void alerting.advance();
  await alerting.stop();
  expect(messages()).toEqual(["phone: ✕ gateway is down (a)"]);
  history.close();
  begin([sink("mail"), sink("phone")]);
  await pass(5);
  expect(messages()[1]).toBe("mail: ✕ gateway is down (a)");
});

test("an alarm is reported, repeated and delivered although the clock was set back by a day", async () => {
  alerting.raise(alarm("gateway"));
  now -= 24 * HOUR_MS;
  await pass(2);
  expect(messages()).toEqual(["phone: ✕ gateway is down (a)"]);
  now -= 24 * HOUR_MS;
  await pass(2);
  expect(messages()).toHaveLength(2);
  broken.add("phone");
  alerting.raise(alarm("notes"));
  await pass(60);
  broken.clear();
  now -= 24 * HOUR_MS;
  await pass(2);
  expect(messages().slice(2).join()).toContain("notes");
});
