import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { differences } from "./compare.ts";
import { sendRaw, type RawAnswer } from "./raw-request.ts";
import {
  bodyBytes,
  readProbes,
  type Probe,
  type RecordedBody,
} from "./recordings.ts";
import type { RunningServer, ServerUnderTest } from "./server-under-test.ts";
import { ask } from "./start-notes.ts";
import { newSubstitution, type Substitution } from "./substitution.ts";
import type { Tolerance } from "./tolerated.ts";

const probes = readProbes();

const passwords: Readonly<Record<string, string>> = {
  member: "not-a-secret-member",
  dbadmin: "not-a-secret-dbadmin",
  other: "not-a-secret-other",
  locked: "not-a-secret-locked",
};

/** A request that was sent during a probe, and the delay after the start of the probe (shorter than recorded). */
interface ConcurrentRequest {
  readonly after: number;
  readonly method: string;
  readonly path: string;
  readonly json?: unknown;
}

const plain = (k: number): ConcurrentRequest => ({
  after: 250,
  method: "PUT",
  path: `/probe-feed/live${k}`,
  json: { type: "plain", k },
});

const concurrentRequests: Readonly<Record<string, ConcurrentRequest>> = {
  "longpoll woken by a change": plain(1),
  "LiveSync live: longpoll selector, style, heartbeat": plain(2),
  "longpoll with selector: a leaf does not wake it": {
    after: 250,
    method: "PUT",
    path: "/probe-feed/h:1795230767697",
    json: { type: "leaf" },
  },
  "continuous now with heartbeat 300 and a change": plain(3),
  "eventsource heartbeat": plain(4),
  "longpoll cut by database deletion": {
    after: 250,
    method: "DELETE",
    path: "/probe-q",
  },
};

/** The probe that starts the session of later probes. */
const SESSION_STARTED = "session POST json";
const recordedSession = probes.find(
  ({ name }) => name === "session GET with cookie",
)!.request.headers["cookie"]!;

const sessionOf = ({ headers }: RawAnswer): string =>
  String(headers["set-cookie"]).split(";")[0]!;

/** Compares the server with the recorded responses of a real CouchDB, one test each, in their order. */
export function compareWithProbes(
  server: ServerUnderTest,
  tolerance: Tolerance,
): void {
  describe("the answers of a real CouchDB", () => {
    let running: RunningServer;
    let substitution: Substitution;

    beforeAll(async () => {
      running = await server.start();
      substitution = newSubstitution(running.url);
    });

    afterAll(async () => {
      await running.stop();
    });

    test.each(probes)("$group: $name", async (probe) => {
      const difference = tolerance.difference(`${probe.group}: ${probe.name}`);
      const answer = await askAs(probe, running, substitution);
      if (probe.name === SESSION_STARTED) {
        substitution.remember(recordedSession, sessionOf(answer));
      }
      if (difference?.status !== undefined) {
        expect(answer.status).toBe(difference.status);
        const recorded = probe.response;
        const before = recorded.body?.json as { error?: string } | undefined;
        expect([difference.status, difference.error]).not.toEqual([
          recorded.status,
          before?.error,
        ]);
        // The response to a HEAD has no body.
        if (probe.request.method !== "HEAD") {
          const body = JSON.parse(answer.text) as Record<string, string>;
          expect(body.error).toBe(difference.error);
          expect(body.reason).not.toBe("");
        }
      } else {
        expect(
          differences(probe.response, answer, substitution, {
            tolerance,
            ignore: difference?.ignore ?? [],
            without: difference?.without ?? [],
          }),
        ).toEqual([]);
      }
      for (const { method, path, json } of difference?.instead ?? []) {
        const response = await ask(running.url + substitution.apply(path), {
          method,
          user: running.admin,
          json:
            json === undefined
              ? undefined
              : (JSON.parse(
                  substitution.apply(JSON.stringify(json)),
                ) as unknown),
        });
        expect(response.status).toBeLessThan(300);
      }
    });
  });
}

async function askAs(
  probe: Probe,
  running: RunningServer,
  substitution: Substitution,
): Promise<RawAnswer> {
  const { method, path, rawQuery, headers } = probe.request;
  const authorization = credentials(probe, running);
  const query = rawQuery === undefined ? "" : `?${rawQuery}`;
  const concurrent = concurrentRequests[probe.name];
  const concurrentResponse =
    concurrent === undefined
      ? undefined
      : sleep(concurrent.after).then(() =>
          ask(running.url + concurrent.path, {
            method: concurrent.method,
            user: running.admin,
            json: concurrent.json,
          }),
        );
  const answer = await sendRaw({
    base: running.url,
    method,
    target: substitution.apply(path + query),
    headers: {
      ...(authorization === undefined ? {} : { authorization }),
      ...substituted(headers, substitution),
    },
    body: bodyBytes(withGeneratedIds(probe), probe.name, substitution.apply),
    enough:
      probe.response.end === "client-closed" ? isEnough(probe) : undefined,
  });
  expect((await concurrentResponse)?.ok ?? true, "the concurrent request").toBe(
    true,
  );
  return answer;
}

/** When to disconnect from an endless feed: after a row or after a few heartbeats. */
function isEnough(probe: Probe): (text: string) => boolean {
  const FEW = '{"results":[\n\n\n\n'.length;
  const { length } = probe.response.body!;
  return (text) =>
    text.startsWith('{"results"')
      ? text.length >= Math.min(length, FEW)
      : text.includes("}\n");
}

/**
 * Adds the ids that CouchDB generated to documents that were sent without one. Generated ids are random, so later lists would
 * otherwise have a different order. The generation of ids is tested in store.test.ts.
 */
function withGeneratedIds(probe: Probe): RecordedBody | undefined {
  const { body } = probe.request;
  const id = generatedIds[`${probe.group}: ${probe.name}`];
  if (id === undefined) {
    return body;
  }
  const { docs, ...single } = body!.json as {
    docs?: readonly Record<string, unknown>[];
  };
  const withId = (document: Record<string, unknown>): unknown =>
    "_id" in document ? document : { _id: id, ...document };
  return {
    length: body!.length,
    json:
      docs === undefined
        ? withId(single)
        : { ...single, docs: docs.map(withId) },
  };
}

const generatedIds: Readonly<Record<string, string>> = {
  "documents: post without id": "69efe270f2a229945fc98ea8500022c8",
  "conflicts: new_edits false without id": "69efe270f2a229945fc98ea850002be3",
  "bulk: mixed without the bad one": "69efe270f2a229945fc98ea85000410a",
};

function substituted(
  headers: Readonly<Record<string, string>>,
  substitution: Substitution,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      substitution.apply(value),
    ]),
  );
}

function credentials(probe: Probe, running: RunningServer): string | undefined {
  const basic = (name: string, password: string): string =>
    `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;
  switch (probe.as) {
    case "anonymous":
      return undefined;
    case "admin":
      return basic(running.admin.name, running.admin.password);
    case "wrong":
      return basic(running.admin.name, "not-the-password");
    case "unknown":
      return basic("nobody-here", "whatever");
    case "locked, wrong password":
      return basic("probe-locked", "not-the-password");
    default:
      return basic(`probe-${probe.as}`, passwords[probe.as]!);
  }
}
