import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { openHistory, type History } from "./history.ts";
import { endStoredSessions } from "./sessions.ts";
import { UserSessions, type UserSession } from "./user-sessions.ts";

let place: ReturnType<typeof temporaryHome>;
let history: History;
let now: number;
let password: string;

beforeEach(() => {
  place = temporaryHome();
  history = openHistory(`${place.directory}/history.db`);
  now = 1000;
  password = "one";
});
afterEach(() => {
  history.close();
  place.remove();
});

function open(): UserSessions {
  return new UserSessions(
    history.db,
    () => password,
    () => now,
  );
}

const anna: UserSession = {
  provider: "home",
  settings: "s",
  subject: "1",
  sid: "at-home",
  name: "anna@example.org (home)",
  role: "viewer",
  userId: null,
  confirmedAt: 1000,
  endsAt: 5000,
};

test("a session survives a restart, and its tokens are readable only with the cookie", () => {
  const token = open().start(anna, "refresh-token");
  const again = open();
  expect(again.find(token)).toEqual(anna);
  expect(again.secretsOf(token)).toBe("refresh-token");
  const file =
    readFileSync(`${place.directory}/history.db`, "latin1") +
    readFileSync(`${place.directory}/history.db-wal`, "latin1");
  expect(file).toContain("anna@example.org");
  expect(file).not.toContain("refresh-token");
  expect(file).not.toContain(token);
});

test("a session ends at its time, by another operator password, and with all others", () => {
  const sessions = open();
  const token = sessions.start(anna, "");
  password = "two";
  expect(sessions.find(token)).toBeUndefined();
  password = "one";
  expect(sessions.find(token)).toEqual(anna);
  now = 5000;
  expect(sessions.find(token)).toBeUndefined();
  now = 1000;
  expect(sessions.endAll()).toBe(1);
  expect(sessions.find(token)).toBeUndefined();
  const other = sessions.start(anna, "");
  endStoredSessions(`${place.directory}/history.db`);
  expect(open().find(other)).toBeUndefined();
});

test("a person who signs in again and again ends only sessions of that person", () => {
  const sessions = open();
  const [first, other] = [
    sessions.start(anna, ""),
    sessions.start({ ...anna, subject: "2" }, ""),
  ];
  const newest = Array.from({ length: 1000 }, () => sessions.start(anna, ""));
  expect(sessions.find(first)).toBeUndefined();
  expect(sessions.find(other)).toMatchObject({ subject: "2" });
  expect(sessions.find(newest.at(-1) ?? "")).toEqual(anna);
});

test("a confirmation changes the role, but does not bring back an ended session", () => {
  const sessions = open();
  const token = sessions.start(anna, "old");
  const change = {
    role: "admin",
    name: anna.name,
    userId: "u-1",
    confirmedAt: 3000,
  } as const;
  sessions.confirm(token, change, "new");
  expect(open().find(token)).toEqual({ ...anna, ...change });
  expect(open().secretsOf(token)).toBe("new");
  expect(sessions.endWhere(({ sid }) => sid === "at-home")).toBe(1);
  sessions.confirm(token, change, "newer");
  expect(sessions.find(token)).toBeUndefined();
  expect(open().find(token)).toBeUndefined();
});

test("damaged tokens are not returned", () => {
  const token = open().start(anna, "refresh-token");
  history.db.exec("UPDATE user_sessions SET secrets = x'00'");
  expect(open().secretsOf(token)).toBeUndefined();
});
