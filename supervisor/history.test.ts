import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openHistory, outliveFullDisk } from "./history.ts";
import { temporaryHome } from "./testing/temporary-home.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

test("what happened is there after the file was closed and opened again, newest first", () => {
  const path = join(place.directory, "history.db");
  let now = 1000;
  const first = openHistory(path, () => (now += 1));
  first.act("gateway", "start", "hearth up");
  first.serviceChanged("gateway", "starting", "running", null);
  first.checkChanged("gateway", "up", "down", "answered 500");
  first.close();
  const second = openHistory(path);
  expect(second.latest(2)).toEqual([
    {
      at: 1003,
      kind: "check",
      name: "gateway",
      from: "up",
      to: "down",
      reason: "answered 500",
    },
    {
      at: 1002,
      kind: "service",
      name: "gateway",
      from: "starting",
      to: "running",
      reason: null,
    },
  ]);
  second.close();
});

test("restarts count from the last time that a person started the service", () => {
  let now = 0;
  const history = openHistory(
    join(place.directory, "history.db"),
    () => (now += 1),
  );
  history.act("gateway", "restart", "ended");
  history.act("gateway", "start", "hearth up");
  history.act("gateway", "restart", "ended");
  history.act("notes", "restart-asked", "told");
  history.act("gateway", "adopt", "healthy");
  history.act("gateway", "restart", "ended");
  expect(history.restartsOf("gateway")).toEqual([3, 6]);
  history.act("gateway", "restart-asked", "told");
  expect(history.restartsOf("gateway")).toEqual([]);
  history.close();
});

test("a history that cannot be written says so and goes on", () => {
  const said: string[] = [];
  const history = openHistory(join(place.directory, "history.db"));
  const quiet = outliveFullDisk(history, (sentence) => said.push(sentence));
  history.close();
  quiet.act("gateway", "start", "hearth up");
  expect(said).toEqual([
    expect.stringMatching(/^the history cannot be written: /),
  ]);
});
