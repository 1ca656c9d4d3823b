import type { ResourceDouble, Values } from "../protocol.ts";
import { recordedDiff } from "../recorded.ts";
import { EngineError, type EngineApi } from "./engine-api.ts";

/** docker.RemoteImage: other.json, "docker.RemoteImage"; an image that exists by name is not pulled. */
export function imageDouble(engine: EngineApi): ResourceDouble {
  return {
    deleteBeforeReplace: false,
    diff: recordedDiff(
      "RemoteImage",
      { name: "replace", triggers: "replace" },
      ["imageId"],
    ),
    async create(inputs) {
      const name = String(inputs.name);
      if ((await imageId(engine, name)) === null) {
        await engine.call(
          "POST",
          `/images/create?fromImage=${encodeURIComponent(name)}`,
        );
      }
      const found = await imageId(engine, name);
      if (found === null) {
        throw new Error(`Unable to find image ${name}`);
      }
      return { id: `${found}${name}`, state: { ...inputs, imageId: found } };
    },
    async read(_id, state) {
      const found = await imageId(engine, String(state.name));
      return found === null ? null : { ...state, imageId: found };
    },
    update: async (_id, state, inputs) => ({ ...state, ...inputs }),
    async delete(_id, state) {
      if (state.keepLocally !== true) {
        await engine.call(
          "DELETE",
          `/images/${encodeURIComponent(String(state.name))}`,
        );
      }
    },
  };
}

/** docker.Network: other.json, "docker.Network". */
export function networkDouble(engine: EngineApi): ResourceDouble {
  return {
    deleteBeforeReplace: true,
    diff: recordedDiff("Network", { labels: "replace" }, ["ipamConfigs"]),
    async create(inputs) {
      const created = (await engine.call("POST", "/networks/create", {
        Name: inputs.name,
        Internal: inputs.internal ?? false,
        CheckDuplicate: true,
      })) as { readonly Id: string };
      return {
        id: created.Id,
        state: { ...inputs, ...(await subnets(engine, created.Id)) },
      };
    },
    async read(id, state) {
      const found = await subnets(engine, id);
      return found === null ? null : { ...state, ...found };
    },
    update: async (_id, state, inputs) => ({ ...state, ...inputs }),
    delete: (id) => remove(engine, `/networks/${id}`),
  };
}

/** docker.Volume: other.json, "docker.Volume"; lifecycle.json, "volume exists, not in state" (adopted silently). */
export function volumeDouble(engine: EngineApi): ResourceDouble {
  return {
    deleteBeforeReplace: true,
    diff: recordedDiff("Volume", { labels: "replace" }),
    async create(inputs) {
      const labels = (inputs.labels ?? []) as readonly {
        readonly label: string;
        readonly value: string;
      }[];
      await engine.call("POST", "/volumes/create", {
        Name: inputs.name,
        // As the real plugin does: without labels there is no such field.
        ...(labels.length > 0 && {
          Labels: Object.fromEntries(
            labels.map(({ label, value }) => [label, value]),
          ),
        }),
      });
      return { id: String(inputs.name), state: inputs };
    },
    read: async (id, state) =>
      (await exists(engine, `/volumes/${id}`)) ? state : null,
    update: async (_id, state, inputs) => ({ ...state, ...inputs }),
    delete: (id) => remove(engine, `/volumes/${id}`),
  };
}

async function imageId(
  engine: EngineApi,
  name: string,
): Promise<string | null> {
  try {
    const found = (await engine.call(
      "GET",
      `/images/${encodeURIComponent(name)}/json`,
    )) as { readonly Id: string };
    return found.Id;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) {
      return null;
    }
    throw error;
  }
}

/** The plugin's source: after creating a network, and at each refresh, it reads what Docker chose. Null if it no longer exists. */
async function subnets(engine: EngineApi, id: string): Promise<Values | null> {
  try {
    const { IPAM } = (await engine.call("GET", `/networks/${id}`)) as {
      readonly IPAM: {
        readonly Config: readonly { readonly Subnet: string }[];
      };
    };
    return {
      ipamConfigs: IPAM.Config.map(({ Subnet }) => ({ subnet: Subnet })),
    };
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) {
      return null;
    }
    throw error;
  }
}

async function exists(engine: EngineApi, path: string): Promise<boolean> {
  try {
    await engine.call("GET", path);
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) {
      return false;
    }
    throw error;
  }
}

/** Deleting a missing network or volume succeeds (the plugin's source: it inspects before it removes). */
async function remove(engine: EngineApi, path: string): Promise<void> {
  try {
    await engine.call("DELETE", path);
  } catch (error) {
    if (!(error instanceof EngineError && error.status === 404)) {
      throw error;
    }
  }
}
