import type { Redis } from "ioredis";
import { z } from "zod";
import { MINUTE_MS } from "../../../core/duration.ts";
import { textOf } from "../../../core/failure.ts";
import { CLUSTER_REJECTED, isCluster } from "../../../core/redis/advice.ts";
import {
  readRedisPlace,
  type RedisReading,
  type RedisSettingNames,
} from "../../../core/redis/place.ts";
import { mebibytes } from "../../../core/size.ts";
import { whole } from "../../config/fields.ts";
import { redisOnce } from "../../redis-once.ts";
import { everyCheck } from "./every-check.ts";
import {
  failing,
  okUnless,
  type ProbeContext,
  type ProbeResult,
} from "./probe.ts";

const FIELDS = {
  url: "url",
  host: "host",
  port: "port",
  sentinels: "sentinels",
  masterName: "master_name",
  username: "user",
  password: "password",
  sentinelUsername: "sentinel_user",
  sentinelPassword: "sentinel_password",
  database: "database",
  tls: "tls",
  ca: "ca",
} as const satisfies RedisSettingNames;

const number = z.union([z.string(), z.number().transform(String)]).optional();

export const redisCheck = z
  .strictObject({
    ...everyCheck(),
    kind: z.literal("redis"),
    url: z.string().optional(),
    host: z.string().optional(),
    port: number,
    sentinels: z.string().optional(),
    master_name: z.string().optional(),
    user: z.string().optional(),
    password: z.string().optional(),
    sentinel_user: z.string().optional(),
    sentinel_password: z.string().optional(),
    database: number,
    tls: z.union([z.string(), z.boolean().transform(String)]).optional(),
    ca: z.string().optional(),
    expect: z
      .strictObject({
        memory_below_percent: whole(1, 100).default(90),
        evictions_per_minute_below: whole(1, 1_000_000).default(1000),
      })
      .prefault({}),
  })
  .superRefine((check, context) => {
    const { place, mistakes } = readPlace(check);
    for (const { setting, message } of mistakes) {
      const path = [FIELDS[setting]];
      context.addIssue({ code: "custom", message, path });
    }
    if (place === null && mistakes.length === 0) {
      context.addIssue({
        code: "custom",
        message: "is required, or host, or sentinels",
        path: ["url"],
      });
    }
  });

type RedisCheck = z.output<typeof redisCheck>;

function readPlace(
  check: Partial<Record<(typeof FIELDS)[keyof typeof FIELDS], string>>,
): RedisReading {
  return readRedisPlace((setting) => check[FIELDS[setting]], FIELDS);
}

/** PING, and memory, evictions and the append-only file from INFO, on a new connection. */
export async function probeRedis(
  check: RedisCheck,
  { signal, before, now }: ProbeContext,
): Promise<ProbeResult> {
  const { place } = readPlace(check);
  if (place === null) {
    return failing("its settings name no Redis");
  }
  return redisOnce(
    place,
    { timeoutMs: check.timeout, signal, connectionName: "hearth-check" },
    async (redis) => {
      const unable = await whyUnable(redis);
      return unable === undefined
        ? judge(await redis.info(), { before, now }, check.expect)
        : { ...failing(unable), restartFutile: true };
    },
  );
}

/** Why a running Redis rejects calls, as its answer to PING says; undefined: it accepts them. Other errors are thrown. */
async function whyUnable(redis: Redis): Promise<string | undefined> {
  try {
    await redis.ping();
    return undefined;
  } catch (error) {
    const text = textOf(error);
    if (text.startsWith("LOADING")) {
      return "reads its data from disk after a start, and accepts calls afterwards";
    }
    if (!text.startsWith("MISCONF")) {
      throw error;
    }
    const [, cause] = /AOF file: (.+)/.exec(text) ?? [];
    return `rejects writes, because its data cannot be written to disk${cause === undefined ? "" : ` (${cause})`}: check the free space there (\`df -h\`), and the log of Redis; writes are accepted again once the disk can be written`;
  }
}

function judge(
  info: string,
  { before, now }: Pick<ProbeContext, "before" | "now">,
  expect: RedisCheck["expect"],
): ProbeResult {
  const fields = new Map(
    info.split("\r\n").map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1)];
    }),
  );
  const figure = (name: string) => Number(fields.get(name) ?? 0);
  const used = figure("used_memory");
  const most = figure("maxmemory");
  const percent = most === 0 ? undefined : Math.round((100 * used) / most);
  const evicted = figure("evicted_keys");
  const minutes = (now - (before?.["at"] ?? now)) / MINUTE_MS;
  const earlier = before?.["evicted_keys"] ?? evicted;
  // A restart resets the counter.
  const perMinute =
    minutes > 0 ? Math.max(0, Math.round((evicted - earlier) / minutes)) : 0;
  const measures = {
    at: now,
    memory_bytes: used,
    evicted_keys: evicted,
    ...(percent === undefined ? {} : { memory_percent: percent }),
  };
  if (isCluster(info)) {
    return failing(CLUSTER_REJECTED, measures);
  }
  const appends = figure("aof_enabled") === 1;
  const text = [
    `${mebibytes(used)} MiB${percent === undefined ? "" : `, ${percent} % of its limit`}`,
    `${perMinute} evicted in a minute`,
    appends ? "append-only file written" : "no append-only file",
  ].join(", ");
  return okUnless(
    [
      percent !== undefined &&
        percent > expect.memory_below_percent &&
        `over ${expect.memory_below_percent} % of its memory is in use`,
      perMinute > expect.evictions_per_minute_below &&
        `more than ${expect.evictions_per_minute_below} keys are evicted in a minute`,
      appends &&
        fields.get("aof_last_bgrewrite_status") !== "ok" &&
        "the append-only file could not be rewritten",
    ],
    text,
    measures,
  );
}
