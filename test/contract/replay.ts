import { expect } from "vitest";
import { differences } from "./compare.ts";
import {
  bodyBytes,
  type RecordedRequest,
  type RecordedStep,
  type Scenario,
} from "./recordings.ts";
import {
  type OperatedServer,
  repeatAction,
  operate,
  passwordOf,
  saveUser,
  security,
} from "./operator.ts";
import { sendRaw, type RawAnswer } from "./raw-request.ts";
import type { RunningServer } from "./server-under-test.ts";
import { ask } from "./start-notes.ts";
import { newSubstitution, type Substitution } from "./substitution.ts";
import type { Tolerance } from "./tolerated.ts";

/** A database that scenarios are replayed into. */
export interface Vault {
  /** Replays a scenario and returns all differences from the recording. */
  readonly run: (scenario: Scenario) => Promise<string[]>;
}

export const replay = { prepare };

/** Creates the users of a scenario, and its database except in scenarios about a missing one. */
async function prepare(
  running: RunningServer,
  scenario: Scenario,
  tolerance: Tolerance,
): Promise<Vault> {
  const users = new Set(
    scenario.lines
      .filter((line) => line.type === "request")
      .map((line) => line.req.auth?.user ?? ""),
  );
  // A later scenario may use a user who is not a member.
  for (const user of [...users, "vault-other"]) {
    if (user !== "" && user !== "admin") {
      await saveUser(running, user);
    }
  }
  if (!scenario.name.startsWith("g2-") && !scenario.name.startsWith("g3-")) {
    const member = [...users].find((user) => /^vault-(?!other)/.test(user))!;
    await operate(running, "PUT", scenario.db);
    await operate(running, "PUT", `${scenario.db}/_security`, security(member));
  }
  if (scenario.name.startsWith("g6-")) {
    // The device with the old password had tried once before the recording started.
    const authorized = authorization(running, {
      user: "vault-lock2",
      password: "wrong",
    });
    await fetch(running.url, { headers: { authorization: authorized } });
  }
  const context: ReplayContext = {
    running,
    substitution: newSubstitution(running.url),
    tolerance,
    seeds: [],
  };
  return { run: async (next) => await runScenario(context, next) };
}

interface ReplayContext extends OperatedServer {
  readonly substitution: Substitution;
  readonly tolerance: Tolerance;
}

interface PendingRequest {
  readonly line: RecordedRequest;
  readonly problems: Promise<string[]>;
  /** Disconnects if the client did. */
  readonly disconnect: () => void;
}

async function runScenario(
  context: ReplayContext,
  scenario: Scenario,
): Promise<string[]> {
  const found: string[] = [];
  let pending: PendingRequest[] = [];
  async function end(ended: readonly PendingRequest[]): Promise<void> {
    for (const each of ended) {
      each.disconnect();
    }
    for (const each of ended) {
      found.push(...(await each.problems));
    }
    pending = pending.filter((each) => !ended.includes(each));
  }
  for (const line of inOrder(scenario, context.tolerance)) {
    await end(pending.filter((each) => mustPrecede(each.line, line)));
    if (line.type === "step") {
      await repeatAction(context, scenario, line);
      continue;
    }
    const left = new AbortController();
    pending.push({
      line,
      problems: exchange(context, scenario.name, line, left.signal),
      disconnect: () => {
        if (line.end === "client-closed") {
          left.abort();
        }
      },
    });
  }
  await end(pending);
  return found.map((problem) => `${scenario.name} ${problem}`);
}

/** Sorts the lines by time; a read that CouchDB served before an overlapping write is moved before that write. */
function inOrder(
  { name, lines }: Scenario,
  tolerance: Tolerance,
): Scenario["lines"] {
  const at = (line: RecordedRequest | RecordedStep): number => {
    if (line.type === "step") {
      return line.t;
    }
    const write = lines.find(
      (other) =>
        other.type === "request" &&
        isWrite(other) &&
        other.t <= line.t &&
        line.t <= other.t + other.dur,
    );
    return write !== undefined && tolerance.readBeforeWrite(`${name} ${line.n}`)
      ? write.t - 0.5
      : line.t;
  };
  return lines.toSorted((a, b) => at(a) - at(b));
}

/** Whether an earlier request must end first: it did so in the recording, or a read and a write overlapped there. */
function mustPrecede(
  before: RecordedRequest,
  line: RecordedRequest | RecordedStep,
): boolean {
  if (before.t + before.dur <= line.t) {
    return true;
  }
  // A longpoll ends with a write.
  return (
    line.type === "request" &&
    before.req.query.feed !== "longpoll" &&
    line.req.query.feed !== "longpoll" &&
    isWrite(before) !== isWrite(line)
  );
}

function isWrite({ req }: RecordedRequest): boolean {
  const documents = /^\/[^/]+\/(?!_local)/.test(req.path);
  return (
    (req.method === "PUT" && documents) || req.path.endsWith("/_bulk_docs")
  );
}

async function exchange(
  { running, substitution, tolerance }: ReplayContext,
  scenario: string,
  line: RecordedRequest,
  left: AbortSignal,
): Promise<string[]> {
  const request = `${line.req.method} ${line.req.path}`;
  try {
    const answer = await send(running, line, substitution, left);
    if (line.req.path.endsWith("/_compact")) {
      await compacted(running, line);
    }
    if (line.res === undefined) {
      tolerance.use("no answer recorded");
      return [];
    }
    const recorded = { ...line.res, end: line.end };
    return differences(recorded, answer, substitution, {
      ...(tolerance.difference(`client: ${scenario} ${line.n}`) ??
        tolerance.difference(`client: ${request}`)),
      tolerance,
    }).map((problem) => `${line.n} ${request}: ${problem}`);
  } catch (failure) {
    if (line.res !== undefined || !left.aborted) {
      return [`${line.n} ${request}: no response: ${String(failure)}`];
    }
    tolerance.use("no answer recorded");
    return [];
  }
}

/** Waits until a compaction has ended; otherwise later responses would depend on its duration. */
async function compacted(
  running: RunningServer,
  { req }: RecordedRequest,
): Promise<void> {
  const database = running.url + req.path.replace(/\/_compact$/, "");
  const info = async (): Promise<unknown> =>
    (await ask(database, { user: running.admin })).json();
  await expect
    .poll(info, { timeout: 10_000 })
    .toMatchObject({ compact_running: false });
}

async function send(
  running: RunningServer,
  line: RecordedRequest,
  substitution: Substitution,
  left: AbortSignal,
): Promise<RawAnswer> {
  const { method, path, query, headers, auth, body } = line.req;
  const sent = ["content-type", "accept", "accept-encoding"].filter(
    (name) => headers[name] !== undefined,
  );
  return await sendRaw({
    base: running.url,
    method,
    target: substitution.apply(withQuery(path, query)),
    headers: {
      ...Object.fromEntries(sent.map((name) => [name, headers[name]!])),
      ...(auth === undefined
        ? {}
        : { authorization: authorization(running, auth) }),
    },
    body: bodyBytes(body, undefined, substitution.apply),
    ...(line.res === undefined ? { signal: left } : { left }),
  });
}

function withQuery(
  path: string,
  query: Readonly<Record<string, string>>,
): string {
  const text = new URLSearchParams(query).toString();
  return text === "" ? path : `${path}?${text}`;
}

function authorization(
  running: RunningServer,
  auth: { readonly user: string; readonly password: string },
): string {
  const isAdmin = auth.user === "admin";
  const name = isAdmin ? running.admin.name : auth.user;
  const right = isAdmin ? running.admin.password : passwordOf(auth.user);
  const password = auth.password === "right" ? right : "not-the-password";
  return `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;
}
