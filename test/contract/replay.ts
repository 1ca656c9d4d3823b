import { expect } from "vitest";
import { differences } from "./compare.ts";
import {
  bodyBytes,
  type RecordedRequest,
  type RecordedStep,
  type Scenario,
} from "./recordings.ts";
import {
  type Operated,
  act,
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
  /** Replays a scenario; gives every difference from what was recorded. */
  readonly run: (scenario: Scenario) => Promise<string[]>;
}

export const replay = { prepare };

/** Makes the users of a scenario, and its database unless it is one about a missing one. */
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
  // A story may bring in a user who is no member later on.
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
    // The stale device had tried once before the recording began.
    const authorized = authorization(running, {
      user: "vault-lock2",
      password: "wrong",
    });
    await fetch(running.url, { headers: { authorization: authorized } });
  }
  const replaying: Replaying = {
    running,
    substitution: newSubstitution(running.url),
    tolerance,
    seeds: [],
  };
  return { run: async (next) => await runScenario(replaying, next) };
}

interface Replaying extends Operated {
  readonly substitution: Substitution;
  readonly tolerance: Tolerance;
}

interface UnderWay {
  readonly line: RecordedRequest;
  readonly problems: Promise<string[]>;
  /** Goes away as the client did. */
  readonly leave: () => void;
}

async function runScenario(
  replaying: Replaying,
  scenario: Scenario,
): Promise<string[]> {
  const found: string[] = [];
  let underWay: UnderWay[] = [];
  async function end(due: readonly UnderWay[]): Promise<void> {
    for (const each of due) {
      each.leave();
    }
    for (const each of due) {
      found.push(...(await each.problems));
    }
    underWay = underWay.filter((each) => !due.includes(each));
  }
  for (const line of inOrder(scenario, replaying.tolerance)) {
    await end(underWay.filter((each) => mustPrecede(each.line, line)));
    if (line.type === "step") {
      await act(replaying, scenario, line);
      continue;
    }
    const left = new AbortController();
    underWay.push({
      line,
      problems: exchange(replaying, scenario.name, line, left.signal),
      leave: () => {
        if (line.end === "client-closed") {
          left.abort();
        }
      },
    });
  }
  await end(underWay);
  return found.map((problem) => `${scenario.name} ${problem}`);
}

/** As they were sent; a read that CouchDB answered from before the write it overlapped comes before that. */
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

/** Whether what was sent before must be answered first: it was so when recorded, or a read and a write overlapped and either could be first. */
function mustPrecede(
  before: RecordedRequest,
  line: RecordedRequest | RecordedStep,
): boolean {
  if (before.t + before.dur <= line.t) {
    return true;
  }
  // A longpoll ends by a write.
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
  { running, substitution, tolerance }: Replaying,
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
      return [`${line.n} ${request}: no answer: ${String(failure)}`];
    }
    tolerance.use("no answer recorded");
    return [];
  }
}

/** Waits for the end of a compaction, or later answers would depend on how long it takes. */
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
