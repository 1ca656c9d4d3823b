import type { Testbed } from "./testbed.ts";

const PREFIX = "hearth:limits:";

/** The state of one payer's limits in Redis; money in nano-dollars. */
interface LimitsInRedis {
  readonly entity: string;
  readonly leased: number;
  readonly holders: number;
  readonly slots: number;
  readonly windows: readonly {
    readonly name: string;
    /** Whether its total belongs to the current generation. */
    readonly current: boolean;
    readonly total: number;
    readonly version: number;
    readonly pending: number;
  }[];
}

// The layout is described in gateway/limits/lua/prelude.lua.
const READ = `
  local generation, entities = redis.call('HGET', KEYS[1] .. 'generation', 'id'), {}
  for _, key in ipairs(redis.call('KEYS', KEYS[1] .. 'entity:*')) do
    local fields, entity = redis.call('HGETALL', key), { entity = string.sub(key, #KEYS[1] + 8), windows = {}, leased = 0, holders = 0, slots = 0 }
    for i = 1, #fields, 2 do
      local packed = cmsgpack.unpack(fields[i + 1])
      if fields[i] == 'account' then
        entity.leased, entity.holders, entity.slots = packed[1], packed[2], packed[3]
      else
        table.insert(entity.windows, { name = string.sub(fields[i], 8), current = packed[1] == generation, total = packed[2] or 0, version = packed[3] or 0, pending = packed[5] or 0 })
      end
    end
    table.insert(entities, entity)
  end
  return cjson.encode(entities)`;

/** Reads the limits of all payers in Redis. */
export async function readLimits(
  testbed: Testbed,
): Promise<readonly LimitsInRedis[]> {
  const read = await testbed.redisClient?.eval(READ, 1, PREFIX);
  // An empty Lua table is an empty object in JSON.
  return JSON.parse(String(read ?? "[]"), (_, value: unknown) =>
    isEmpty(value) ? [] : value,
  ) as readonly LimitsInRedis[];
}

function isEmpty(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.keys(value).length === 0
  );
}

/** Ids of calls with reservations. */
export async function callsInRedis(
  testbed: Testbed,
): Promise<readonly string[]> {
  return (await testbed.redisClient?.hkeys(`${PREFIX}calls`)) ?? [];
}

/** Makes all leases expire; XX keeps leases from reappearing that were released meanwhile. */
export async function endLeases(testbed: Testbed): Promise<void> {
  const client = testbed.redisClient;
  for (const id of (await client?.zrange(`${PREFIX}leases`, "0", "-1")) ?? []) {
    await client?.call("ZADD", `${PREFIX}leases`, "XX", "1", id);
  }
}
