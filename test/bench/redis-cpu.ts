import type { Redis } from "ioredis";

/** Processor time of Redis in ms since it was started. */
export async function redisCpu(client: Redis): Promise<number> {
  const info = await client.info("cpu");
  const seconds = (name: string) =>
    Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1] ?? 0);
  return 1_000 * (seconds("used_cpu_sys") + seconds("used_cpu_user"));
}
