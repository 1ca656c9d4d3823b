import { createServer, type Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitFor } from "../../test/wait-for.ts";
import type { Alarm } from "./alarm.ts";
import { startWatchdog } from "./watchdog.ts";
import { listen, portOf } from "../../test/servers/ports.ts";

let outside: Server;
let requests: string[];
let answer: number;
let raised: Map<string, Alarm>;
let end: () => void;

beforeEach(async () => {
  requests = [];
  answer = 200;
  raised = new Map();
  end = () => {};
  outside = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.writeHead(answer).end();
  });
  await listen(outside);
});
afterEach(async () => {
  end();
  await new Promise((resolve) => outside.close(resolve));
});

const alarms = {
  raise: (alarm: Alarm) => void raised.set(alarm.fingerprint, alarm),
  clear: (fingerprint: string) => void raised.delete(fingerprint),
};

function begin(): void {
  const port = portOf(outside);
  const url = `http://127.0.0.1:${port}/alive/s3cret`;
  end = startWatchdog({ url, every: 20 }, alarms);
}

test("the external address is requested immediately and regularly until the end", async () => {
  begin();
  await waitFor("three pings", () => requests.length >= 3);
  expect(new Set(requests)).toEqual(new Set(["GET /alive/s3cret"]));
  end();
  // Requests may have been in flight.
  await waitFor("no more pings", async () => {
    const before = requests.length;
    await sleep(100);
    return requests.length === before;
  });
});

test("an unreachable address raises an alarm after three attempts, without its secret path, and clears it when it answers", async () => {
  answer = 500;
  begin();
  const alarm = await waitFor("the alarm", () => raised.get("watchdog"));
  expect(requests.length).toBeGreaterThanOrEqual(3);
  expect(alarm).toMatchObject({ level: "warning", output: "answered 500" });
  expect(JSON.stringify(alarm)).not.toContain("s3cret");
  answer = 200;
  await waitFor("it to be cleared", () => raised.size === 0);
});

test("without an address no request is sent, and no earlier alarm stays open", async () => {
  raised.set("watchdog", {
    fingerprint: "watchdog",
    level: "warning",
    subject: "watchdog",
    text: "the watchdog address cannot be reached",
    command: "hearth doctor",
  });
  end = startWatchdog({ every: 1 }, alarms);
  await sleep(30);
  expect(requests).toEqual([]);
  expect([...raised.keys()]).toEqual([]);
});
