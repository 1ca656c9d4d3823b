import { differences } from "./compare.ts";
import {
  bodyBytes,
  type RecordedRequest,
  type RecordedStep,
  type Scenario,
} from "./recordings.ts";
import { sendRaw, type RawAnswer } from "./raw-request.ts";
import type { RunningServer } from "./server-under-test.ts";
import { ask } from "./start-notes.ts";
import { newSubstitution, type Substitution } from "./substitution.ts";

const SEED = "_local/obsidian_livesync_sync_parameters";

const security = (user: string): unknown => ({
  admins: { names: [], roles: ["_admin"] },
  members: { names: [user], roles: [] },
});

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
): Promise<Vault> {
  const users = new Set(
    scenario.lines
      .filter((line) => line.type === "request")
      .map((line) => line.req.auth?.user ?? ""),
  );
  // A story may bring in a user who is no member later on.
  for (const user of [...users, "vault-other"]) {
    if (user !== "" && user !== "admin") await saveUser(running, user);
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
  const substitution = newSubstitution(running.url);
  const seeds: unknown[] = [];
  return {
    run: async (next) => await runScenario(running, next, substitution, seeds),
  };
}

interface UnderWay {
  readonly endsAt: number;
  readonly done: Promise<void>;
  /** Goes away as the client did. */
  readonly leave: () => void;
}

async function runScenario(
  running: RunningServer,
  scenario: Scenario,
  substitution: Substitution,
  seeds: unknown[],
): Promise<string[]> {
  const found: string[] = [];
  let underWay: UnderWay[] = [];
  const lines = [...scenario.lines].sort((a, b) => a.t - b.t);
  for (const line of lines) {
    // What had been answered before this was sent must be answered before it is sent again.
    const due = underWay.filter((each) => each.endsAt <= line.t);
    for (const each of due) each.leave();
    await Promise.all(due.map((each) => each.done));
    underWay = underWay.filter((each) => !due.includes(each));
    if (line.type === "step") {
      await act(running, scenario, line, seeds);
      continue;
    }
    if (line.end === "server-away" || line.res === undefined) continue;
    const cut = new AbortController();
    underWay.push({
      endsAt: line.t + line.dur,
      done: exchange(
        running,
        line,
        substitution,
        cut.signal,
        found,
        overlapsWrite(line, lines) ||
          followsOverlap.has(`${scenario.db} ${line.n}`),
      ),
      leave: () => {
        if (line.end === "client-closed") cut.abort();
      },
    });
  }
  for (const each of underWay) each.leave();
  await Promise.all(underWay.map((each) => each.done));
  return found.map((problem) => `${scenario.name} ${problem}`);
}

/** Reads whose `since` came from a read that overlapped a write, and may therefore be further on here. */
const followsOverlap = new Set(["vault-plain 66", "vault-plain 111"]);

/** Whether a read ran while something was written: both outcomes are right then. A longpoll ends by a write, so it is no such read. */
function overlapsWrite(
  line: RecordedRequest,
  lines: Scenario["lines"],
): boolean {
  if (isWrite(line) || line.req.query.feed === "longpoll") return false;
  return lines.some(
    (other) =>
      other.type === "request" &&
      isWrite(other) &&
      other.t <= line.t + line.dur &&
      line.t <= other.t + other.dur,
  );
}

function isWrite({ req }: RecordedRequest): boolean {
  const documents = /^\/[^/]+\/(?!_local)/.test(req.path);
  return (
    (req.method === "PUT" && documents) || req.path.endsWith("/_bulk_docs")
  );
}

async function exchange(
  running: RunningServer,
  line: RecordedRequest,
  substitution: Substitution,
  cut: AbortSignal,
  found: string[],
  overlaps: boolean,
): Promise<void> {
  let answer: RawAnswer;
  try {
    answer = await send(running, line, substitution, cut);
  } catch (failure) {
    if (line.end !== "client-closed") {
      found.push(`${line.n}: no answer: ${String(failure)}`);
    }
    return;
  }
  if (line.end === "client-closed") return;
  const problems = differences(line.res!, answer, substitution, {
    // A server names itself as it likes.
    ignore:
      line.req.path === "/"
        ? ["git_sha", "features", "vendor"]
        : ["compact_running"],
  });
  if (overlaps) return;
  for (const problem of problems) {
    found.push(`${line.n} ${line.req.method} ${line.req.path}: ${problem}`);
  }
}

async function send(
  running: RunningServer,
  line: RecordedRequest,
  substitution: Substitution,
  cut: AbortSignal,
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
    signal: cut,
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

/** What the operator did beside the client, or what befell the server. */
async function act(
  running: RunningServer,
  scenario: Scenario,
  step: RecordedStep,
  seeds: unknown[],
): Promise<void> {
  const seed = `${scenario.db}/${SEED}`;
  switch (step.event) {
    case "operator deletes _local/obsidian_livesync_sync_parameters": {
      seeds.push(
        await (
          await ask(`${running.url}/${seed}`, { user: running.admin })
        ).json(),
      );
      await operate(running, "DELETE", seed);
      break;
    }
    case "operator puts the old seed back": {
      const { _rev } = (await (
        await ask(`${running.url}/${seed}`, { user: running.admin })
      ).json()) as { _rev: string };
      await operate(running, "PUT", seed, {
        ...(seeds.at(-1) as object),
        _rev,
      });
      break;
    }
    case "operator puts the old seed back before any device wrote under the new one": {
      const { _rev, ...members } = seeds.at(-1) as Record<string, unknown>;
      await operate(running, "PUT", seed, members);
      break;
    }
    case "operator saves the same password again (new salt)":
      await saveUser(running, "vault-lock2");
      break;
    case "_security put back by the operator":
      await operate(
        running,
        "PUT",
        `${scenario.db}/_security`,
        security("vault-member"),
      );
      break;
    default:
      // The device's own doings come with its requests.
      break;
  }
}

async function saveUser(running: RunningServer, name: string): Promise<void> {
  const address = `_users/org.couchdb.user:${name}`;
  const before = await ask(`${running.url}/${address}`, {
    user: running.admin,
  });
  const rev = before.ok
    ? ((await before.json()) as { _rev: string })._rev
    : undefined;
  await operate(running, "PUT", address, {
    ...(rev === undefined ? {} : { _rev: rev }),
    name,
    password: passwordOf(name),
    roles: [],
    type: "user",
  });
}

function passwordOf(user: string): string {
  return `not-a-secret-${user}`;
}

async function operate(
  running: RunningServer,
  method: string,
  address: string,
  json?: unknown,
): Promise<void> {
  const answer = await ask(`${running.url}/${address}`, {
    method,
    user: running.admin,
    json,
  });
  if (!answer.ok) {
    throw new Error(
      `${method} ${address}: ${answer.status} ${await answer.text()}`,
    );
  }
}
