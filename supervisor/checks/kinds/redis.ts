import { z } from "zod";
import { whole } from "../../config/fields.ts";
import { everyCheck } from "./every-check.ts";
import {
  failing,
  okUnless,
  type ProbeContext,
  type ProbeResult,
} from "./probe.ts";
import { mebibytes } from "../../../core/size.ts";

export const redisCheck = z.strictObject({
  ...everyCheck(),
  kind: z.literal("redis"),
  url: z.url({
    protocol: /^rediss?$/,
    error: "must be a redis:// address",
  }),
  user: z.string().optional(),
  password: z.string().optional(),
  ca: z.string().optional(),
  expect: z
    .strictObject({
      memory_below_percent: whole(1, 100).default(90),
      evictions_per_minute_below: whole(1, 1_000_000).default(1000),
    })
    .prefault({}),
});

/** PING, and memory, evictions and the append-only file from INFO, on a new connection. */
export async function probeRedis(
  { url, user, password, ca, timeout, expect }: z.output<typeof redisCheck>,
  { signal, before, now }: ProbeContext,
): Promise<ProbeResult> {
  const { Redis } = await import("ioredis");
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: timeout,
    commandTimeout: timeout,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectionName: "hearth-check",
    ...(user === undefined || user === "" ? {} : { username: user }),
    ...(password === undefined || password === "" ? {} : { password }),
    ...(ca === undefined || ca === "" ? {} : { tls: { ca } }),
  });
  let trouble: Error | undefined;
  client.on("error", (error: Error) => {
    trouble ??= error;
  });
  const hangUp = () => client.disconnect();
  signal.addEventListener("abort", hangUp, { once: true });
  try {
    await client.connect().catch((error: unknown) => {
      throw trouble ?? error;
    });
    await client.ping();
    return judge(await client.info(), { before, now }, expect);
  } finally {
    signal.removeEventListener("abort", hangUp);
    client.disconnect();
  }
}

function judge(
  info: string,
  { before, now }: Pick<ProbeContext, "before" | "now">,
  expect: z.output<typeof redisCheck>["expect"],
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
  const minutes = (now - (before?.["at"] ?? now)) / 60_000;
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
  if (figure("loading") === 1) {
    return failing("loading its data from disk", measures);
  }
  const appends = figure("aof_enabled") === 1;
  if (appends && fields.get("aof_last_write_status") !== "ok") {
    return failing(
      "cannot write its append-only file and rejects writes",
      measures,
    );
  }
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
