import { z } from "zod";
import { codeOf, textOf } from "../failure.ts";
import { basic, type Couch } from "./couch.ts";
import { asExpected } from "./database.ts";
import { probe, readCertificate, timeToPiece } from "./probe.ts";

export type Finding = {
  readonly name: string;
  readonly state: "fine" | "warning" | "bad" | "skipped";
  /** What was seen, and what to do where it is not fine; one sentence. */
  readonly text: string;
};

export type DoctorAsk = {
  /** Where devices reach the store; no trailing slash. */
  readonly url: string;
  readonly vault: string;
  /** The vault's own user; undefined when its credentials are not kept here. */
  readonly member:
    { readonly user: string; readonly password: string } | undefined;
  /** The store itself, as its admin: what only an admin may read is never asked through the public address. */
  readonly couch: Couch;
  /** Milliseconds between heartbeats, as the plugin asks for them. */
  readonly heartbeatMs?: number;
  readonly bodyBytes?: number;
  readonly now: () => number;
  readonly signal: AbortSignal;
};

const pluginHeartbeatMs = 30_000;
const heartbeatGraceMs = 5000;
const largestBodyBytes = 50_000_000;
const usualWaitMs = 20_000;
const largeBodyWaitMs = 180_000;
const expiresSoonMs = 14 * 86_400_000;
const origins = [
  "app://obsidian.md",
  "capacitor://localhost",
  "http://localhost",
];

/** Looks at the store as a device does, through its public address. Changes nothing that a device could notice. */
export async function examine(ask: DoctorAsk): Promise<readonly Finding[]> {
  const certificate = await certificateFinding(ask);
  const reached = await reachFinding(ask);
  if (reached.state === "bad") return [certificate, reached];
  const found = [certificate, reached];
  for (const origin of origins) found.push(await preflightFinding(ask, origin));
  found.push(...(await settingsFindings(ask)));
  // One after the other, and no more after a refused password: five wrong ones would lock the user out.
  const access = await memberFindings(ask);
  found.push(...access);
  const mayGoOn = access.every(({ state }) => state === "fine");
  if (mayGoOn)
    found.push(
      ...(await Promise.all([bodyFinding(ask), heartbeatFinding(ask)])),
    );
  else
    for (const name of ["large documents", "heartbeat"])
      found.push({
        name,
        state: "skipped",
        text: "it needs a member who may sync: mend that first.",
      });
  return found;
}

async function certificateFinding({
  url,
  now,
  signal,
}: DoctorAsk): Promise<Finding> {
  const name = "certificate";
  if (url.startsWith("http:"))
    return {
      name,
      state: "warning",
      text: `${url} has no encryption: desktops may sync, phones and tablets need HTTPS with a certificate they trust.`,
    };
  try {
    const seen = await readCertificate(url, within(signal, usualWaitMs));
    const until = new Date(seen.validTo).toISOString().slice(0, 10);
    if (seen.validTo < now())
      return {
        name,
        state: "bad",
        text: `the certificate ended on ${until}: renew it.`,
      };
    if (!seen.trusted)
      return {
        name,
        state: "bad",
        text: `the certificate (by ${seen.issuer}) is not trusted (${seen.reason ?? "unknown reason"}): phones refuse it; use one of a known authority, with its whole chain, or install yours on every device.`,
      };
    return seen.validTo - now() < expiresSoonMs
      ? {
          name,
          state: "warning",
          text: `the certificate ends on ${until}: see that it is renewed.`,
        }
      : {
          name,
          state: "fine",
          text: `trusted, by ${seen.issuer}, until ${until}`,
        };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `no certificate could be read at ${url} (${reason(error)}): see that HTTPS is served there.`,
    };
  }
}

async function reachFinding({ url, signal }: DoctorAsk): Promise<Finding> {
  const name = "reachable";
  try {
    const { status, body } = await probe(url, {
      method: "GET",
      path: "/_up",
      signal: within(signal, usualWaitMs),
    });
    if (status === 200 && body.includes('"ok"'))
      return { name, state: "fine", text: `${url}/_up says ok` };
    return {
      name,
      state: "bad",
      text: `${url}/_up answers ${status}, which is no healthy notes store: see where the address leads.`,
    };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `nothing answers at ${url} (${reason(error)}): see that the address and the proxy are right, and that a device's network reaches it.`,
    };
  }
}

async function preflightFinding(
  { url, vault, signal }: DoctorAsk,
  origin: string,
): Promise<Finding> {
  const name = `preflight ${origin}`;
  try {
    const { status, headers } = await probe(url, {
      method: "OPTIONS",
      path: `/${encodeURIComponent(vault)}`,
      headers: {
        origin,
        "access-control-request-method": "GET",
        "access-control-request-headers": "authorization,content-type",
      },
      signal: within(signal, usualWaitMs),
    });
    const allowed = headers["access-control-allow-origin"];
    const credentials = headers["access-control-allow-credentials"];
    if (
      status < 300 &&
      allowed === origin &&
      credentials === "true" &&
      String(headers["access-control-allow-headers"]).includes("authorization")
    )
      return { name, state: "fine", text: `${status}, allowed` };
    return {
      name,
      state: "bad",
      text: `the answer to the preflight is ${status} with access-control-allow-origin ${String(allowed)}: let the proxy pass OPTIONS on, and add no CORS headers of its own.`,
    };
  } catch (error) {
    return { name, state: "bad", text: `no answer (${reason(error)}).` };
  }
}

const config = z.record(z.string(), z.record(z.string(), z.string()));

/** What the plugin's own check looks at, and what it wants. */
const wanted: readonly (readonly [
  string,
  string,
  (value: string) => boolean,
])[] = [
  ["chttpd", "require_valid_user", isTrue],
  ["chttpd_auth", "require_valid_user", isTrue],
  ["httpd", "WWW-Authenticate", (value) => value.includes("Basic")],
  ["httpd", "enable_cors", isTrue],
  ["chttpd", "enable_cors", isTrue],
  ["chttpd", "max_http_request_size", (value) => Number(value) >= 4294967296],
  ["couchdb", "max_document_size", (value) => Number(value) >= 50_000_000],
  ["cors", "credentials", isTrue],
  [
    "cors",
    "origins",
    (value) =>
      value === "*" ||
      origins.every((origin) => value.split(",").includes(origin)),
  ],
];

async function settingsFindings({
  couch,
  signal,
}: DoctorAsk): Promise<readonly Finding[]> {
  const name = "server settings";
  try {
    const sections = asExpected(
      config,
      await couch.ask("GET", "/_node/_local/_config", { signal }),
    );
    const wrong = wanted.filter(
      ([section, key, fits]) => !fits(sections[section]?.[key] ?? ""),
    );
    return wrong.length === 0
      ? [{ name, state: "fine", text: "as the plugin wants them" }]
      : wrong.map(([section, key]) => ({
          name,
          state: "bad",
          text: `[${section}] ${key} is ${JSON.stringify(sections[section]?.[key] ?? null)}, which the plugin's check refuses: mend the server's ini.`,
        }));
  } catch (error) {
    return [{ name, state: "bad", text: textOf(error) }];
  }
}

function isTrue(value: string): boolean {
  return value === "true";
}

/** May the member sync, and is everything else kept from it? The last two ask for what would do no harm if it were allowed. */
async function memberFindings({
  url,
  vault,
  member,
  couch,
  signal,
}: DoctorAsk): Promise<readonly Finding[]> {
  const name = "member may sync";
  if (member === undefined)
    return [
      {
        name,
        state: "skipped",
        text: `the credentials of vault ${vault} are not kept here: \`hearth notes rotate ${vault}\` makes new ones.`,
      },
    ];
  const base = `/${encodeURIComponent(vault)}`;
  const ask = async (method: string, path: string, body?: unknown) =>
    probe(url, {
      method,
      path,
      headers: {
        authorization: basic(member.user, member.password),
        "content-type": "application/json",
      },
      ...(body === undefined
        ? {}
        : { body: [Buffer.from(JSON.stringify(body))] }),
      signal: within(signal, usualWaitMs),
    });
  try {
    const feed = await ask("POST", `${base}/_changes?limit=1`, {});
    if (feed.status === 401)
      return [
        {
          name,
          state: "bad",
          text: `the password that is kept for ${member.user} is refused: \`hearth notes rotate ${vault}\` makes a new one.`,
        },
      ];
    if (feed.status !== 200)
      return [
        {
          name,
          state: "bad",
          text: `the vault's user gets ${feed.status} for its own changes: \`hearth notes list\` shows whether the vault is there and open.`,
        },
      ];
    const markPath = `${base}/_local/hearth_doctor`;
    const written = await ask("PUT", markPath, { at: Date.now() });
    if (written.status !== 201)
      return [
        {
          name,
          state: "bad",
          text: `the vault's user may read but not write (${written.status}): see that the proxy passes PUT on.`,
        },
      ];
    const { rev } = JSON.parse(written.body) as { rev: string };
    await ask("DELETE", `${markPath}?rev=${rev}`);
    const compact = await ask("POST", `${base}/_compact`);
    const scratch = `/hearth_doctor_${process.pid}`;
    const create = await ask("PUT", scratch);
    if (create.status < 300) await couch.ask("DELETE", scratch);
    return [
      { name, state: "fine", text: "reads and writes" },
      kept("member may not compact", compact.status, vault),
      // Who may make a database may drop one: the same right, asked for without risk.
      kept("member may not drop", create.status, vault),
    ];
  } catch (error) {
    return [{ name, state: "bad", text: `no answer (${reason(error)}).` }];
  }
}

function kept(name: string, status: number, vault: string): Finding {
  return status === 401 || status === 403
    ? { name, state: "fine", text: `refused (${status})` }
    : {
        name,
        state: "bad",
        text: `the answer is ${status}: this user has an administrator's rights; \`hearth notes rotate ${vault}\` after its roles are taken away.`,
      };
}

/** A body as large as the largest document, of blanks: it passes the proxy and leaves nothing behind. */
async function bodyFinding({
  url,
  vault,
  member,
  signal,
  bodyBytes = largestBodyBytes,
}: DoctorAsk): Promise<Finding> {
  const name = "large documents";
  const size = `${Math.round(bodyBytes / 1e6)} MB`;
  try {
    const { status } = await probe(url, {
      method: "POST",
      path: `/${encodeURIComponent(vault)}/_revs_diff`,
      headers: {
        authorization: basic(member?.user ?? "", member?.password ?? ""),
        "content-type": "application/json",
        "content-length": String(bodyBytes),
      },
      body: blanks(bodyBytes),
      signal: within(signal, largeBodyWaitMs),
    });
    return status === 200
      ? { name, state: "fine", text: `a body of ${size} passes` }
      : {
          name,
          state: "bad",
          text: `a body of ${size} is answered with ${status}: raise the proxy's limit (client_max_body_size, request_body max_size).`,
        };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `a body of ${size} does not pass (${reason(error)}): raise the proxy's limit (client_max_body_size, request_body max_size).`,
    };
  }
}

function* blanks(bytes: number): Generator<Buffer> {
  const piece = Buffer.alloc(65_536, " ");
  yield Buffer.from("{");
  for (let left = bytes - 2; left > 0; left -= piece.length)
    yield piece.subarray(0, Math.min(left, piece.length));
  yield Buffer.from("}");
}

async function heartbeatFinding({
  url,
  vault,
  member,
  signal,
  heartbeatMs = pluginHeartbeatMs,
}: DoctorAsk): Promise<Finding> {
  const name = "heartbeat";
  const advice =
    "let the proxy pass answers on as they come (no buffering) and wait for at least 60 s.";
  const waitMs = heartbeatMs + heartbeatGraceMs;
  try {
    const { status, ms } = await timeToPiece(
      url,
      {
        method: "GET",
        path: `/${encodeURIComponent(vault)}/_changes?feed=longpoll&since=now&heartbeat=${heartbeatMs}`,
        headers: {
          authorization: basic(member?.user ?? "", member?.password ?? ""),
        },
        signal: within(signal, waitMs),
      },
      // The answer's opening, a line feed too, comes at once.
      (chunk, ms) =>
        ms > heartbeatMs / 2 && chunk.toString("utf8").trim() === "",
    );
    return status === 200 && ms !== undefined
      ? {
          name,
          state: "fine",
          text: `arrives after ${Math.round(ms / 1000)} s`,
        }
      : {
          name,
          state: "warning",
          text:
            status === 200
              ? "a note changed before the first heartbeat came: run this again in a quiet moment."
              : `the live feed is answered with ${status}.`,
        };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `no heartbeat of the live feed came within ${Math.round(waitMs / 1000)} s (${reason(error)}): ${advice}`,
    };
  }
}

function within(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)]);
}

function reason(error: unknown): string {
  return codeOf(error) ?? textOf(error);
}
