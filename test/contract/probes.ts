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

/** What was done while a probe's request was open, and how long after it began (shorter than recorded). */
interface Act {
  readonly after: number;
  readonly method: string;
  readonly path: string;
  readonly json?: unknown;
}

const plain = (k: number): Act => ({
  after: 250,
  method: "PUT",
  path: `/probe-feed/live${k}`,
  json: { type: "plain", k },
});

const acts: Readonly<Record<string, Act>> = {
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

/** The session whose cookie later probes send. */
const SESSION_STARTED = "session POST json";
const recordedSession = probes.find(
  ({ name }) => name === "session GET with cookie",
)!.request.headers["cookie"]!;

const sessionOf = ({ headers }: RawAnswer): string =>
  String(headers["set-cookie"]).split(";")[0]!;

/** The recorded answers of a real CouchDB, one test each, in their order. */
export function holdToProbes(
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
        // The answer to a HEAD says no more than its status.
        if (probe.request.method !== "HEAD") {
          const said = JSON.parse(answer.text) as Record<string, string>;
          expect(said.error).toBe(difference.error);
          expect(said.reason).not.toBe("");
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
        const made = await ask(running.url + substitution.apply(path), {
          method,
          user: running.admin,
          json:
            json === undefined
              ? undefined
              : (JSON.parse(
                  substitution.apply(JSON.stringify(json)),
                ) as unknown),
        });
        expect(made.status).toBeLessThan(300);
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
  const act = acts[probe.name];
  const acting =
    act === undefined
      ? undefined
      : new Promise((resolve) => setTimeout(resolve, act.after)).then(() =>
          ask(running.url + act.path, {
            method: act.method,
            user: running.admin,
            json: act.json,
          }),
        );
  const answer = await sendRaw({
    base: running.url,
    method,
    target: substitution.apply(path + query),
    headers: {
      ...(authorization === undefined ? {} : { authorization }),
      ...mapped(headers, substitution),
    },
    body: bodyBytes(named(probe), probe.name, substitution.apply),
    enough:
      probe.response.end === "client-closed" ? isEnough(probe) : undefined,
  });
  expect((await acting)?.ok ?? true, "what was done meanwhile").toBe(true);
  return answer;
}

/** When a feed that never ends by itself is left: after a row, or after a few heartbeats. */
function isEnough(probe: Probe): (text: string) => boolean {
  const FEW = '{"results":[\n\n\n\n'.length;
  const { length } = probe.response.body!;
  return (text) =>
    text.startsWith('{"results"')
      ? text.length >= Math.min(length, FEW)
      : text.includes("}\n");
}

/**
 * Documents that were sent without an id get the one CouchDB made, or the lists after them would be in another order:
 * the beginning of such ids is chance. That ids are made is tested in store.test.ts.
 */
function named(probe: Probe): RecordedBody | undefined {
  const { body } = probe.request;
  const id = madeIds[`${probe.group}: ${probe.name}`];
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

const madeIds: Readonly<Record<string, string>> = {
  "documents: post without id": "69efe270f2a229945fc98ea8500022c8",
  "conflicts: new_edits false without id": "69efe270f2a229945fc98ea850002be3",
  "bulk: mixed without the bad one": "69efe270f2a229945fc98ea85000410a",
};

function mapped(
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
