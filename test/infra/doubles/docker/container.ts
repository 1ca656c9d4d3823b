import { setTimeout as sleep } from "node:timers/promises";
import {
  CreatedUnhealthy,
  type ResourceDouble,
  type Values,
} from "../protocol.ts";
import {
  arrives,
  diffContainer,
  nanoseconds,
  stateAfterCreate,
  stateAfterRefresh,
} from "./container-rules.ts";
import { EngineError, type EngineApi } from "./engine-api.ts";
import { tarOf } from "./tar.ts";

const MEBIBYTE = 1024 * 1024;

/** docker.Container, with the rules of `observed/docker-container.json` and the tables of infra-observed. */
export function containerDouble(engine: EngineApi): ResourceDouble {
  return {
    deleteBeforeReplace: true,
    // lifecycle.json, uploads, "owner or group given".
    check: (inputs) =>
      list(inputs.uploads).some(
        (upload) => "owner" in upload || "group" in upload,
      )
        ? [
            `Container resource '${String(inputs.name)}' has a problem: Invalid or unknown key. Examine values at '${String(inputs.name)}.uploads'.`,
          ]
        : [],
    diff: diffContainer,
    create: (inputs) => create(engine, inputs),
    async read(id, state) {
      const found = await inspect(engine, id);
      if (found === null) {
        return null;
      }
      const limits = {
        memory: found.HostConfig.Memory / MEBIBYTE,
        memorySwap: found.HostConfig.MemorySwap / MEBIBYTE,
        ...(state.memoryReservation === undefined
          ? {}
          : {
              memoryReservation: found.HostConfig.MemoryReservation / MEBIBYTE,
            }),
        restart: found.HostConfig.RestartPolicy.Name,
        image: found.Image,
      };
      const refreshed = stateAfterRefresh({ ...state, ...limits });
      if (found.State.Running) {
        return refreshed;
      }
      // "stopped or killed: up --refresh: with published ports replaced, without ports started".
      return list(state.ports).length > 0
        ? { ...refreshed, ports: [] }
        : { ...refreshed, mustRun: false };
    },
    async update(id, state, inputs) {
      const changed = diffContainer(state, inputs).updates;
      if (changed.includes("mustRun") && state.mustRun === false) {
        await engine.call("POST", `/containers/${id}/start`);
      }
      if (changed.some(arrives)) {
        await engine.call("POST", `/containers/${id}/update`, limitsOf(inputs));
      }
      // Values that do not reach the container are in the state nevertheless, as the program wrote them.
      return { ...inputs };
    },
    async delete(id, state) {
      // "replace, none in state: stop signal and SIGKILL at once, exit 137".
      const grace = Number(state.destroyGraceSeconds ?? 0);
      try {
        await engine.call("POST", `/containers/${id}/stop?t=${grace}`);
        await engine.call("DELETE", `/containers/${id}?force=true&v=true`);
      } catch (error) {
        // "removed by hand and to be replaced: the plugin ignores it while deleting".
        if (error instanceof EngineError && error.status === 404) {
          return;
        }
        throw error;
      }
    },
  };
}

interface Inspected {
  readonly Image: string;
  readonly State: {
    readonly Running: boolean;
    readonly Health?: { readonly Status: string };
  };
  readonly HostConfig: {
    readonly Memory: number;
    readonly MemorySwap: number;
    readonly MemoryReservation: number;
    readonly RestartPolicy: { readonly Name: string };
  };
}

async function inspect(
  engine: EngineApi,
  id: string,
): Promise<Inspected | null> {
  try {
    return (await engine.call("GET", `/containers/${id}/json`)) as Inspected;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) {
      return null;
    }
    throw error;
  }
}

async function create(
  engine: EngineApi,
  inputs: Values,
): Promise<{ readonly id: string; readonly state: Values }> {
  let id: string;
  try {
    const created = (await engine.call(
      "POST",
      `/containers/create?name=${encodeURIComponent(String(inputs.name))}`,
      requestOf(inputs),
    )) as { readonly Id: string };
    id = created.Id;
  } catch (error) {
    throw new Error(`Unable to create container: ${(error as Error).message}`);
  }
  for (const network of list(inputs.networksAdvanced).slice(1)) {
    await engine.call("POST", `/networks/${String(network.name)}/connect`, {
      Container: id,
      EndpointConfig: { Aliases: network.aliases ?? [] },
    });
  }
  const uploads = list(inputs.uploads);
  const state = stateAfterCreate(inputs);
  // The plugin's source: empty content counts as missing.
  if (uploads.some(({ content }) => content === "" || content === undefined)) {
    throw new CreatedUnhealthy(
      id,
      state,
      "error with upload content: one of 'content', 'content_base64', or 'source' must be set",
    );
  }
  if (uploads.length > 0) {
    await engine.send(
      "PUT",
      `/containers/${id}/archive?path=/`,
      tarOf(
        uploads.map(({ file, content, permissions }) => ({
          path: String(file),
          content: String(content),
          // "no permissions: 0644; always owner 0:0".
          mode: Number.parseInt(String(permissions ?? "0644"), 8),
        })),
      ),
      "application/x-tar",
    );
  }
  await engine.call("POST", `/containers/${id}/start`);
  if (inputs.wait === true && !(await becomesHealthy(engine, id, inputs)))
  // "never healthy: fails at waitTimeout, with no log lines; it stays, running and unhealthy".
  {
    throw new CreatedUnhealthy(
      id,
      state,
      "container failed to be in healthy state",
    );
  }
  return { id, state };
}

async function becomesHealthy(
  engine: EngineApi,
  id: string,
  inputs: Values,
): Promise<boolean> {
  const until = Date.now() + Number(inputs.waitTimeout ?? 60) * 1000;
  while (Date.now() < until) {
    const found = await inspect(engine, id);
    if (found?.State.Health?.Status === "healthy") {
      return true;
    }
    await sleep(500);
  }
  return false;
}

function requestOf(inputs: Values): Values {
  const ports = list(inputs.ports);
  const key = (port: Values) =>
    `${String(port.internal)}/${String(port.protocol ?? "tcp")}`;
  const [network] = list(inputs.networksAdvanced);
  const health = inputs.healthcheck as Values | undefined;
  const capabilities = (inputs.capabilities ?? {}) as Values;
  const bindings: Record<string, { HostIp: string; HostPort: string }[]> = {};
  for (const port of ports) {
    (bindings[key(port)] ??= []).push({
      HostIp: String(port.ip ?? ""),
      HostPort: String(port.external ?? ""),
    });
  }
  return {
    Image: inputs.image,
    Cmd: inputs.command,
    User: inputs.user,
    Env: inputs.envs,
    Labels: Object.fromEntries(
      list(inputs.labels).map(({ label, value }) => [label, value]),
    ),
    ExposedPorts: Object.fromEntries(ports.map((port) => [key(port), {}])),
    ...(health === undefined
      ? {}
      : {
          Healthcheck: {
            Test: health.tests,
            Interval: nanoseconds(String(health.interval ?? "0s")),
            Timeout: nanoseconds(String(health.timeout ?? "0s")),
            StartPeriod: nanoseconds(String(health.startPeriod ?? "0s")),
            // A deliberate difference (README.md): the plugin leaves this at its default.
            StartInterval: nanoseconds("1s"),
            Retries: health.retries ?? 0,
          },
        }),
    HostConfig: {
      ...limitsOf(inputs),
      PortBindings: bindings,
      Binds: list(inputs.volumes).map(
        ({ volumeName, hostPath, containerPath, readOnly }) =>
          `${String(volumeName ?? hostPath)}:${String(containerPath)}:${readOnly === true ? "ro" : "rw"}`,
      ),
      ShmSize: Number(inputs.shmSize ?? 64) * MEBIBYTE,
      LogConfig: { Type: inputs.logDriver, Config: inputs.logOpts ?? {} },
      SecurityOpt: inputs.securityOpts ?? [],
      CapAdd: capabilities.adds ?? [],
      CapDrop: capabilities.drops ?? [],
      Ulimits: list(inputs.ulimits).map(({ name, soft, hard }) => ({
        Name: name,
        Soft: soft,
        Hard: hard,
      })),
      NetworkMode: network?.name,
    },
    ...(network === undefined
      ? {}
      : {
          NetworkingConfig: {
            EndpointsConfig: {
              [String(network.name)]: { Aliases: network.aliases ?? [] },
            },
          },
        }),
  };
}

/** Changes that can be made in place. */
function limitsOf(inputs: Values): Values {
  return {
    Memory: Number(inputs.memory ?? 0) * MEBIBYTE,
    MemorySwap: Number(inputs.memorySwap ?? 0) * MEBIBYTE,
    MemoryReservation: Number(inputs.memoryReservation ?? 0) * MEBIBYTE,
    RestartPolicy: {
      Name: inputs.restart ?? "no",
      MaximumRetryCount: Number(inputs.maxRetryCount ?? 0),
    },
  };
}

function list(value: unknown): readonly Values[] {
  return Array.isArray(value) ? (value as Values[]) : [];
}
