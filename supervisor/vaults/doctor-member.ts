import { requestReason } from "../../core/failure.ts";
import { basic } from "./couch.ts";
import {
  REQUEST_TIMEOUT_MS,
  within,
  type DoctorOptions,
  type Finding,
} from "./finding.ts";
import { probe, timeToPiece } from "./probe.ts";

const SYNC = "member may sync";
const PLUGIN_HEARTBEAT_MS = 30_000;
const HEARTBEAT_GRACE_MS = 5000;
const MAX_BODY_BYTES = 50_000_000;
const LARGE_BODY_TIMEOUT_MS = 180_000;

/** Whether the member can sync and has no other rights. The requests that must be denied do no harm if they are not. */
export async function memberFindings(
  options: DoctorOptions,
): Promise<readonly Finding[]> {
  const { vault, member } = options;
  if (member === undefined) {
    return [
      {
        name: SYNC,
        state: "skipped",
        text: `no credentials of vault ${vault} are stored here. Run \`hearth notes rotate ${vault}\` to create new ones.`,
      },
    ];
  }
  const request = memberRequest(options, member);
  try {
    const problem = await syncProblem(request, vault, member.user);
    return problem === undefined
      ? [
          { name: SYNC, state: "fine", text: "reads and writes" },
          ...(await rightsFindings(request, options)),
        ]
      : [{ name: SYNC, state: "bad", text: problem }];
  } catch (error) {
    return [
      {
        name: SYNC,
        state: "bad",
        text: `vault ${vault} did not respond to its user (${requestReason(error)}). Run \`hearth status\` and \`hearth logs notes\`.`,
      },
    ];
  }
}

type MemberRequest = (
  method: string,
  path: string,
  body?: unknown,
) => ReturnType<typeof probe>;

function memberRequest(
  { url, signal }: DoctorOptions,
  member: NonNullable<DoctorOptions["member"]>,
): MemberRequest {
  return async (method, path, body) =>
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
      signal: within(signal, REQUEST_TIMEOUT_MS),
    });
}

/** Why the member cannot read or write; undefined when it can. */
async function syncProblem(
  request: MemberRequest,
  vault: string,
  user: string,
): Promise<string | undefined> {
  const base = `/${encodeURIComponent(vault)}`;
  const feed = await request("POST", `${base}/_changes?limit=1`, {});
  if (feed.status === 401) {
    return `the stored password of ${user} is not accepted. Run \`hearth notes rotate ${vault}\` to create a new one.`;
  }
  if (feed.status !== 200) {
    return `reading changes as the vault's user returned ${feed.status}. Run \`hearth notes list\` to check that the vault exists and is open.`;
  }
  const markPath = `${base}/_local/hearth_doctor`;
  const written = await request("PUT", markPath, { at: Date.now() });
  if (written.status !== 201) {
    return `the vault's user can read but not write (${written.status}): check that the proxy forwards PUT.`;
  }
  const { rev } = JSON.parse(written.body) as { rev: string };
  await request("DELETE", `${markPath}?rev=${rev}`);
  return undefined;
}

async function rightsFindings(
  request: MemberRequest,
  { vault, couch }: DoctorOptions,
): Promise<readonly Finding[]> {
  const compact = await request(
    "POST",
    `/${encodeURIComponent(vault)}/_compact`,
  );
  const scratch = `/hearth_doctor_${process.pid}`;
  const create = await request("PUT", scratch);
  if (create.status < 300) {
    await couch.ask("DELETE", scratch);
  }
  return [
    deniedFinding("member may not compact", compact.status, vault),
    // Creating and dropping a database are the same right; creating is the safe request.
    deniedFinding("member may not drop", create.status, vault),
  ];
}

function deniedFinding(name: string, status: number, vault: string): Finding {
  return status === 401 || status === 403
    ? { name, state: "fine", text: `denied (${status})` }
    : {
        name,
        state: "bad",
        text: `returned ${status}: the vault's user has administrator rights. Remove its roles, then run \`hearth notes rotate ${vault}\`.`,
      };
}

/** Sends a body as large as the largest document, an empty list of documents and blanks: it must pass the proxy, and nothing is stored. */
export async function bodyFinding({
  url,
  vault,
  member,
  signal,
  bodyBytes = MAX_BODY_BYTES,
}: DoctorOptions): Promise<Finding> {
  const name = "large documents";
  const size = `${Math.round(bodyBytes / 1e6)} MB`;
  try {
    const { status } = await probe(url, {
      method: "POST",
      path: `/${encodeURIComponent(vault)}/_bulk_docs`,
      headers: {
        authorization: basic(member?.user ?? "", member?.password ?? ""),
        "content-type": "application/json",
        "content-length": String(bodyBytes),
      },
      body: blanks(bodyBytes),
      signal: within(signal, LARGE_BODY_TIMEOUT_MS),
    });
    return status === 201
      ? { name, state: "fine", text: `a body of ${size} is accepted` }
      : {
          name,
          state: "bad",
          text: `a body of ${size} is rejected with ${status}: raise the proxy's limit (client_max_body_size, request_body max_size).`,
        };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `sending a body of ${size} failed (${requestReason(error)}): raise the proxy's limit (client_max_body_size, request_body max_size).`,
    };
  }
}

function* blanks(bytes: number): Generator<Buffer> {
  const piece = Buffer.alloc(65_536, " ");
  const start = Buffer.from('{"docs":[]');
  yield start;
  for (let left = bytes - start.length - 1; left > 0; left -= piece.length) {
    yield piece.subarray(0, Math.min(left, piece.length));
  }
  yield Buffer.from("}");
}

/** An idle live feed sends line feeds, which a proxy must not buffer. */
export async function heartbeatFinding({
  url,
  vault,
  member,
  signal,
  heartbeatMs = PLUGIN_HEARTBEAT_MS,
}: DoctorOptions): Promise<Finding> {
  const name = "heartbeat";
  const advice =
    "disable response buffering in the proxy and set its timeout to at least 60 s.";
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
      // The response starts with a line feed, which arrives immediately.
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
              ? "a note changed before the first heartbeat arrived. Run the command again while no device is syncing changes."
              : `the live feed returned ${status}.`,
        };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `no heartbeat of the live feed arrived within ${Math.round(waitMs / 1000)} s (${requestReason(error)}): ${advice}`,
    };
  }
}
