import { afterEach, beforeEach, expect, test } from "vitest";
import { openHistory, type History } from "../history/history.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { openAlarmStore } from "./alarm-store.ts";
import type { Alarm } from "./alarm.ts";
import { startAlerting, type Alerting } from "./alerting.ts";
import { textOf, titleOf, type AlertMessage } from "./message.ts";
import type { Sink } from "./sinks/sink.ts";

let place: ReturnType<typeof temporaryHome>;
let history: History;
let alerting: Alerting;
let now: number;
let sent: { readonly to: string; readonly message: AlertMessage }[];
let broken: Set<string>;
let notices: string[];

const HOUR = 3_600_000;

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
    remindMs: 4 * HOUR,
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
  alerting = startAlerting({
    store: openAlarmStore(history.db),
    sinks,
    host: "a",
    timeZone: "Europe/Berlin",
    now: () => now,
    onNotice: (sentence) => notices.push(sentence),
  });
}

/** What a kill -9 leaves: the file. */
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

/** Lets time pass in seconds, a step for each, as the supervisor does. */
async function pass(seconds: number, step: number = 1): Promise<void> {
  for (let at = 0; at < seconds; at += step) {
    now += step * 1000;
    await alerting.advance();
  }
}

function told(): readonly string[] {
  return sent.map(({ to, message }) => `${to}: ${titleOf(message)}`);
}

test("what comes within 30 s is told in one message, its end in another", async () => {
  alerting.raise(alarm("gateway"));
  await pass(10);
  alerting.raise(alarm("postgres"));
  alerting.raise(alarm("disk", { level: "warning" }));
  await pass(19);
  expect(told()).toEqual([]);
  await pass(2);
  expect(told()).toEqual([
    "phone: ✕ gateway and postgres are down; disk needs attention (a)",
  ]);
  // In the zone of the jobs, whatever the process's own is.
  expect(textOf(sent[0]!.message)).toContain("since 21 Nov, 11:00 CET (");
  alerting.clear("check:gateway");
  alerting.clear("check:disk");
  await pass(31);
  expect(told().slice(1)).toEqual([
    "phone: ● gateway and disk recovered (a)",
  ]);
  expect(alerting.active().map(({ subject }) => subject)).toEqual(["postgres"]);
});

test("raising again changes the text and tells nobody anew; clearing what is not raised tells nobody", async () => {
  alerting.raise(alarm("gateway"));
  await pass(31);
  alerting.raise(alarm("gateway", { text: "no answer within 10 s" }));
  alerting.clear("check:nothing");
  await pass(HOUR / 1000, 60);
  expect(sent).toHaveLength(1);
  expect(alerting.active()[0]).toMatchObject({ text: "no answer within 10 s" });
});

test("what is over before its group is told is not told at all", async () => {
  alerting.raise(alarm("gateway"));
  await pass(20);
  alerting.clear("check:gateway");
  await pass(120);
  expect(sent).toEqual([]);
});

test("a fault that comes back before its end was told is one story", async () => {
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

test("what lasts is told again after four hours, and only then", async () => {
  alerting.raise(alarm("gateway"));
  await pass(31);
  await pass((4 * HOUR) / 1000 - 60, 30);
  expect(sent).toHaveLength(1);
  await pass(120, 30);
  expect(sent[1]?.message.events[0]?.event).toBe("reminder");
  await pass((4 * HOUR) / 1000, 30);
  expect(sent).toHaveLength(3);
});

test("a silence keeps it quiet and shown; when it ends, what lasts is told", async () => {
  const silence = alerting.silence("gate*", 2 * HOUR, "new disk");
  alerting.raise(alarm("gateway"));
  alerting.raise(alarm("notes"));
  await pass(60);
  expect(told()).toEqual(["phone: ✕ notes is down (a)"]);
  expect(alerting.active()[0]).toMatchObject({
    subject: "gateway",
    silence: { why: "new disk" },
  });
  await beginAgain();
  expect(alerting.silences()).toEqual([silence]);
  await pass(60);
  expect(sent).toHaveLength(1);
  await pass((2 * HOUR) / 1000, 60);
  expect(told().slice(1)).toEqual(["phone: ✕ gateway is down (a)"]);
  expect(alerting.silences()).toEqual([]);
});

test("a silence can be ended before its time, by its pattern or its id", async () => {
  alerting.silence("gateway", HOUR, "one");
  const other = alerting.silence("job:*", HOUR, "two");
  expect(alerting.endSilences("gateway")).toHaveLength(1);
  expect(alerting.endSilences("gateway")).toEqual([]);
  expect(alerting.endSilences(other.id)).toHaveLength(1);
  alerting.raise(alarm("gateway"));
  await pass(31);
  expect(sent).toHaveLength(1);
});

test("those who were told hear of the end, even through a silence", async () => {
  alerting.raise(alarm("gateway"));
  await pass(31);
  alerting.silence("gateway", HOUR, "I look at it");
  alerting.clear("check:gateway");
  await pass(31);
  expect(told()[1]).toBe("phone: ● gateway recovered (a)");
});

test("what was raised, told and not yet delivered is known after a restart", async () => {
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
  expect(told()).toEqual(["phone: ✕ gateway is down (a)"]);
  await beginAgain();
  alerting.raise(alarm("gateway"));
  await pass(60);
  expect(sent).toHaveLength(1);
  alerting.clear("check:gateway");
  await beginAgain();
  await pass(60);
  expect(told()[1]).toBe("phone: ● gateway recovered (a)");
});

test("a sink that fails is tried again with growing waits, its messages in order", async () => {
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(31);
  alerting.raise(alarm("notes"));
  await pass(600, 5);
  broken.clear();
  await pass(600, 5);
  expect(told()).toEqual([
    "phone: ✕ gateway is down (a)",
    "phone: ✕ notes is down (a)",
  ]);
  expect(alerting.sinks()[0]).toMatchObject({ waiting: 0, trouble: null });
});

test("after three failures the fallback gets the message, and the others hear of the broken sink", async () => {
  await beginAgain([sink("phone"), sink("chat"), sink("mail", true)]);
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(120);
  expect(told()).toEqual([
    "chat: ✕ gateway is down (a)",
    "mail: ✕ gateway is down (a)",
    "chat: ▲ alerts by phone needs attention (a)",
  ]);
  expect(alerting.sinks()[0]?.waiting).toBe(0);
  broken.clear();
  alerting.clear("check:gateway");
  await pass(120);
  expect(told().slice(3)).toEqual([
    "phone: ● gateway recovered (a)",
    "chat: ● gateway recovered (a)",
    "chat: ● alerts by phone recovered (a)",
  ]);
});

test("without a fallback a message waits a day, then it is given up with a notice", async () => {
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(31);
  await pass((25 * HOUR) / 1000, 300);
  expect(notices.some((text) => text.includes("was dropped"))).toBe(true);
});

test("a sink that is configured no more leaves nothing behind", async () => {
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(120);
  expect(alerting.active()).toHaveLength(2);
  await beginAgain([sink("chat")]);
  await pass(60);
  expect(told()).toEqual(["chat: ✕ gateway is down (a)"]);
  expect(alerting.active()).toHaveLength(1);
});

test("a history that cannot be written does not keep an alarm from being told", async () => {
  history.db.exec("DROP TABLE alarms; DROP TABLE alert_outbox");
  alerting.raise(alarm("gateway"));
  await pass(31);
  expect(told()).toEqual(["phone: ✕ gateway is down (a)"]);
  expect(notices[0]).toContain("no such table");
});

test("a test message goes through every sink at once, also one that waits for its next try", async () => {
  await beginAgain([sink("phone"), sink("mail", true)]);
  broken.add("phone");
  alerting.raise(alarm("gateway"));
  await pass(31);
  broken.clear();
  const states = await alerting.test();
  expect(states.map(({ trouble }) => trouble)).toEqual([null, null]);
  expect(told().toSorted()).toEqual([
    "mail: ▲ test needs attention (a)",
    "phone: ▲ test needs attention (a)",
    "phone: ✕ gateway is down (a)",
  ]);
});

test("a sink that hangs neither holds up the others nor the end; its message is kept", async () => {
  const hangs: Sink = { ...sink("mail"), send: () => new Promise(() => {}) };
  await beginAgain([hangs, sink("phone")]);
  alerting.raise(alarm("gateway"));
  now += 31_000;
  void alerting.advance();
  await alerting.stop();
  expect(told()).toEqual(["phone: ✕ gateway is down (a)"]);
  history.close();
  begin([sink("mail"), sink("phone")]);
  await pass(5);
  expect(told()[1]).toBe("mail: ✕ gateway is down (a)");
});

test("an alarm is told, reminded of and delivered although the clock was set back by a day", async () => {
  alerting.raise(alarm("gateway"));
  now -= 24 * HOUR;
  await pass(2);
  expect(told()).toEqual(["phone: ✕ gateway is down (a)"]);
  now -= 24 * HOUR;
  await pass(2);
  expect(told()).toHaveLength(2);
  broken.add("phone");
  alerting.raise(alarm("notes"));
  await pass(60);
  broken.clear();
  now -= 24 * HOUR;
  await pass(2);
  expect(told().slice(2).join()).toContain("notes");
});
