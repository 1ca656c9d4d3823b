import { basic } from "./couch.ts";
import {
  reason,
  USUAL_WAIT_MS,
  within,
  type DoctorAsk,
  type Finding,
} from "./finding.ts";
import { probe, timeToPiece } from "./probe.ts";

const PLUGIN_HEARTBEAT_MS = 30_000;
const HEARTBEAT_GRACE_MS = 5000;
const LARGEST_BODY_BYTES = 50_000_000;
const LARGE_BODY_WAIT_MS = 180_000;

/** May the member sync, and is everything else kept from it? The last two ask for what would do no harm if it were allowed. */
export async function memberFindings({
  url,
  vault,
  member,
  couch,
  signal,
}: DoctorAsk): Promise<readonly Finding[]> {
  const name = "member may sync";
  if (member === undefined) {
    return [
      {
        name,
        state: "skipped",
        text: `the credentials of vault ${vault} are not kept here: \`hearth notes rotate ${vault}\` makes new ones.`,
      },
    ];
  }
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
      signal: within(signal, USUAL_WAIT_MS),
    });
  try {
    const feed = await ask("POST", `${base}/_changes?limit=1`, {});
    if (feed.status === 401) {
      return [
        {
          name,
          state: "bad",
          text: `the password that is kept for ${member.user} is refused: \`hearth notes rotate ${vault}\` makes a new one.`,
        },
      ];
    }
    if (feed.status !== 200) {
      return [
        {
          name,
          state: "bad",
          text: `the vault's user gets ${feed.status} for its own changes: \`hearth notes list\` shows whether the vault is there and open.`,
        },
      ];
    }
    const markPath = `${base}/_local/hearth_doctor`;
    const written = await ask("PUT", markPath, { at: Date.now() });
    if (written.status !== 201) {
      return [
        {
          name,
          state: "bad",
          text: `the vault's user may read but not write (${written.status}): see that the proxy passes PUT on.`,
        },
      ];
    }
    const { rev } = JSON.parse(written.body) as { rev: string };
    await ask("DELETE", `${markPath}?rev=${rev}`);
    const compact = await ask("POST", `${base}/_compact`);
    const scratch = `/hearth_doctor_${process.pid}`;
    const create = await ask("PUT", scratch);
    if (create.status < 300) {
      await couch.ask("DELETE", scratch);
    }
    return [
      { name, state: "fine", text: "reads and writes" },
      kept("member may not compact", compact.status, vault),
      // Who may make a database may drop one: the same right, asked for without risk.
      kept("member may not drop", create.status, vault),
    ];
  } catch (error) {
    return [
      {
        name,
        state: "bad",
        text: `the vault gave its user no answer (${reason(error)}): see whether the store runs (\`hearth status\`) and what \`hearth logs notes\` says.`,
      },
    ];
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
export async function bodyFinding({
  url,
  vault,
  member,
  signal,
  bodyBytes = LARGEST_BODY_BYTES,
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
      signal: within(signal, LARGE_BODY_WAIT_MS),
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
  for (let left = bytes - 2; left > 0; left -= piece.length) {
    yield piece.subarray(0, Math.min(left, piece.length));
  }
  yield Buffer.from("}");
}

/** A live feed that is quiet sends line feeds, which a proxy must not hold back. */
export async function heartbeatFinding({
  url,
  vault,
  member,
  signal,
  heartbeatMs = PLUGIN_HEARTBEAT_MS,
}: DoctorAsk): Promise<Finding> {
  const name = "heartbeat";
  const advice =
    "let the proxy pass answers on as they come (no buffering) and wait for at least 60 s.";
  const waitMs = heartbeatMs + HEARTBEAT_GRACE_MS;
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
