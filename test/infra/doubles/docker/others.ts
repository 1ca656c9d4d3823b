import { spawn } from "node:child_process";
import { equal, type ResourceDouble, type Values } from "../protocol.ts";
import { EngineError, type EngineApi } from "./engine-api.ts";

/** docker.RemoteImage: other.json, "docker.RemoteImage". */
export function imageDouble(engine: EngineApi): ResourceDouble {
  return {
    deleteBeforeReplace: false,
    diff(state, inputs) {
      return {
        // "build context files: same"; "triggers: replace"; "name: replace, same content, same image id".
        replaces: changed(state, inputs, ["name", "triggers"]),
        updates: [],
      };
    },
    async create(inputs) {
      const name = String(inputs.name);
      if (inputs.build !== undefined)
        await buildImage(engine, name, inputs.build as Values);
      else if ((await imageId(engine, name)) === null)
        await engine.call(
          "POST",
          `/images/create?fromImage=${encodeURIComponent(name)}`,
        );
      const found = await imageId(engine, name);
      if (found === null) throw new Error(`Unable to find image ${name}`);
      return { id: `${found}${name}`, state: { ...inputs, imageId: found } };
    },
    async read(_id, state) {
      const found = await imageId(engine, String(state.name));
      return found === null ? null : { ...state, imageId: found };
    },
    update: async (_id, state, inputs) => ({ ...state, ...inputs }),
    async delete(_id, state) {
      if (state.keepLocally !== true)
        await engine.call(
          "DELETE",
          `/images/${encodeURIComponent(String(state.name))}`,
        );
    },
  };
}

/** docker.Network: other.json, "docker.Network". */
export function networkDouble(engine: EngineApi): ResourceDouble {
  return {
    deleteBeforeReplace: true,
    diff: (state, inputs) => ({
      replaces: changed(state, inputs, ["name", "labels", "internal"]),
      updates: [],
    }),
    async create(inputs) {
      const made = (await engine.call("POST", "/networks/create", {
        Name: inputs.name,
        Internal: inputs.internal ?? false,
        CheckDuplicate: true,
      })) as { readonly Id: string };
      return { id: made.Id, state: inputs };
    },
    read: async (id, state) =>
      (await exists(engine, `/networks/${id}`)) ? state : null,
    update: async (_id, state, inputs) => ({ ...state, ...inputs }),
    delete: (id) => remove(engine, `/networks/${id}`),
  };
}

/** docker.Volume: other.json, "docker.Volume"; lifecycle.json, "volume exists, not in state" (adopted without a word). */
export function volumeDouble(engine: EngineApi): ResourceDouble {
  return {
    deleteBeforeReplace: true,
    diff: (state, inputs) => ({
      replaces: changed(state, inputs, ["name", "labels"]),
      updates: [],
    }),
    async create(inputs) {
      await engine.call("POST", "/volumes/create", { Name: inputs.name });
      return { id: String(inputs.name), state: inputs };
    },
    read: async (id, state) =>
      (await exists(engine, `/volumes/${id}`)) ? state : null,
    update: async (_id, state, inputs) => ({ ...state, ...inputs }),
    delete: (id) => remove(engine, `/volumes/${id}`),
  };
}

function changed(
  state: Values,
  inputs: Values,
  properties: readonly string[],
): readonly string[] {
  return properties.filter((name) => !equal(state[name], inputs[name]));
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
    if (error instanceof EngineError && error.status === 404) return null;
    throw error;
  }
}

/** "RemoteImage.build from a local directory: works without buildx on the host". */
async function buildImage(
  engine: EngineApi,
  name: string,
  build: Values,
): Promise<void> {
  const tar = spawn("tar", ["-C", String(build.context), "-c", "."], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said = await engine.send(
    "POST",
    `/build?t=${encodeURIComponent(name)}&dockerfile=${encodeURIComponent(String(build.dockerfile ?? "Dockerfile"))}`,
    tar.stdout,
    "application/x-tar",
  );
  const failed = /"error":"((?:[^"\\]|\\.)*)"/.exec(said);
  if (failed !== null) throw new Error(`building ${name}: ${failed[1]}`);
}

async function exists(engine: EngineApi, path: string): Promise<boolean> {
  try {
    await engine.call("GET", path);
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return false;
    throw error;
  }
}

async function remove(engine: EngineApi, path: string): Promise<void> {
  try {
    await engine.call("DELETE", path);
  } catch (error) {
    if (!(error instanceof EngineError && error.status === 404)) throw error;
  }
}
