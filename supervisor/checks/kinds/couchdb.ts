import { hash } from "node:crypto";
import { z } from "zod";
import { parseJson } from "../../../core/json.ts";
import { MINUTE_MS } from "../../../core/duration.ts";
import { webAddress } from "../../config/fields.ts";
import { isWithin } from "../../../core/clock-jumps.ts";
import { askHttp } from "../http-get.ts";
import { everyCheck } from "./every-check.ts";
import {
  failing,
  warning,
  type ProbeContext,
  type ProbeResult,
} from "./probe.ts";
import { sizeWords } from "../../../core/size.ts";
import { withoutTrailingSlashes } from "../../../core/trailing-slashes.ts";
import { counted } from "../../../core/words.ts";

export const couchdbCheck = z.strictObject({
  ...everyCheck(),
  kind: z.literal("couchdb"),
  url: webAddress,
  user: z.string().default("admin"),
  password: z.string().optional(),
});

type CouchdbCheck = z.output<typeof couchdbCheck>;
interface Databases {
  readonly text: string;
  readonly measures: Record<string, number>;
}

/** Sizes of one database. */
const info = z.object({
  doc_count: z.number(),
  sizes: z.object({ file: z.number(), active: z.number() }),
});

/** Sizes are requested rarely: the server opens every database for them. */
const SIZES_EVERY_MS = 10 * MINUTE_MS;

/**
 * When a server rejected credentials, by their hash. They are not sent again for a while: five failures within five minutes
 * lock this address out, and a changed password may be rejected for a moment.
 */
const refused = new Map<string, number>();
const RETRY_AFTER_MS = 10 * MINUTE_MS;
const sizesOf = new Map<string, Databases & { readonly at: number }>();

/** `/_up` without credentials; with credentials, if configured, also active tasks and sizes of databases. */
export async function probeCouchdb(
  check: CouchdbCheck,
  { signal, now }: ProbeContext,
): Promise<ProbeResult> {
  const base = withoutTrailingSlashes(check.url);
  const up = await askHttp(`${base}/_up`, { signal });
  if (up.status !== 200) {
    return failing(
      `/_up answered ${up.status}: ${up.body.trim().slice(0, 200)}`,
    );
  }
  if (check.password === undefined || check.password === "") {
    return { ok: true, text: "up" };
  }
  const credentials = `${check.user}:${check.password}`;
  const known = hash("sha256", `${base} ${credentials}`);
  if (isWithin(refused.get(known) ?? -Infinity, RETRY_AFTER_MS, now)) {
    return refusal(check.user);
  }
  const headers = {
    authorization: `Basic ${Buffer.from(credentials).toString("base64")}`,
  };
  const tasks = await askHttp(`${base}/_active_tasks`, { signal, headers });
  if (tasks.status === 401 || tasks.status === 403) {
    refused.set(known, now);
    return refusal(check.user);
  }
  refused.delete(known);
  let sizes = sizesOf.get(known);
  if (sizes === undefined || !isWithin(sizes.at, SIZES_EVERY_MS, now)) {
    sizes = { ...(await askSizes(base, headers, signal)), at: now };
    sizesOf.set(known, sizes);
  }
  return {
    ok: true,
    text: `up; ${sizes.text}; ${describeTasks(tasks.body)}`,
    measures: sizes.measures,
  };
}

function refusal(user: string): ProbeResult {
  return warning(
    `up, but the password of ${user} was rejected: correct it; the next attempt with this one is in ten minutes`,
  );
}

async function askSizes(
  base: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Databases> {
  const answer = await askHttp(`${base}/_dbs_info`, { signal, headers });
  const rows = z.array(z.object({ info })).safeParse(parseJson(answer.body));
  if (answer.status !== 200 || !rows.success) {
    return { text: "sizes not available", measures: {} };
  }
  const sum = (of: (each: z.output<typeof info>) => number) =>
    rows.data.reduce((total, row) => total + of(row.info), 0);
  const file = sum(({ sizes }) => sizes.file);
  const active = sum(({ sizes }) => sizes.active);
  const count = rows.data.length;
  return {
    text: `${counted(count, "database")}, ${sizeWords(file)} on disk, ${sizeWords(active)} of it in use`,
    measures: {
      databases: count,
      documents: sum(({ doc_count }) => doc_count),
      file_bytes: file,
      active_bytes: active,
    },
  };
}

function describeTasks(body: string): string {
  const tasks = z
    .array(z.looseObject({ type: z.string(), progress: z.number().optional() }))
    .safeParse(parseJson(body));
  if (!tasks.success || tasks.data.length === 0) {
    return "no active tasks";
  }
  return tasks.data
    .slice(0, 3)
    .map(({ type, progress }) =>
      progress === undefined ? type : `${type} ${Math.round(progress)} %`,
    )
    .join(", ");
}
