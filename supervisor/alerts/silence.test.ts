import { expect, test } from "vitest";
import type { Alarm } from "./alarm.ts";
import { silenceOf } from "./silence.ts";

function isSilent(pattern: string, fingerprint: string, subject = "it") {
  const silence = { id: "1", pattern, why: "known", from: 0, until: 10 };
  const alarm: Alarm = {
    fingerprint,
    subject,
    level: "down",
    text: "",
    command: "",
  };
  return silenceOf([silence], alarm, 5) !== undefined;
}

test.each([
  ["gateway-ready", "check:gateway-ready"],
  ["backup-postgres", "job:backup-postgres"],
  ["job:*-backup", "job:postgres-backup"],
  ["*", "anything at all"],
  ["vault*notes", "vaultnotes"],
  ["*a*b*", "cabc"],
])("%s covers %s", (pattern, fingerprint) => {
  expect(isSilent(pattern, fingerprint)).toBe(true);
});

test.each([
  ["gateway", "check:gateway-ready"],
  ["job:*-backup", "job:backup"],
  ["ab*ba", "aba"],
  ["*b*a*", "cabc"],
  ["job.*", "job:backup"],
])("%s does not cover %s", (pattern, fingerprint) => {
  expect(isSilent(pattern, fingerprint)).toBe(false);
});

test("a subject is matched literally, whatever it contains", () => {
  const subject = "vault (my) [notes]: $1 + \\d|^";
  expect(isSilent(subject, "vault:x", subject)).toBe(true);
});

test("a pattern with many stars is matched quickly", () => {
  expect(isSilent("*a".repeat(100), `x:${"a".repeat(90)}`)).toBe(false);
});

test("a silence does not last longer after the clock was set back", () => {
  const silence = { id: "1", pattern: "*", why: "", from: 100, until: 110 };
  const alarm: Alarm = {
    fingerprint: "a",
    subject: "a",
    level: "down",
    text: "",
    command: "",
  };
  const isSilentAt = (now: number) =>
    silenceOf([silence], alarm, now) !== undefined;
  expect([91, 100, 109].map(isSilentAt)).toEqual([true, true, true]);
  expect([90, 0, 110].map(isSilentAt)).toEqual([false, false, false]);
});
