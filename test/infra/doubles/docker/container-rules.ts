import { equal, type Values } from "../protocol.ts";

/**
 * The effect of a change of one property, as observed with the real plugin: `observed/docker-container.json`, whose case names
 * are the keys here. replace: the old container is deleted first. update: changed in place, without a restart. state: "updated",
 * but only in the state (such as destroyGraceSeconds, used later, and healthcheck, which never reaches the container).
 */
const rules: Readonly<Record<string, "replace" | "update" | "state">> = {
  image: "replace",
  envs: "replace",
  command: "replace",
  entrypoints: "replace",
  labels: "replace",
  memory: "update",
  memoryReservation: "update",
  memorySwap: "update",
  cpuShares: "update",
  cpuSet: "update",
  cpus: "replace",
  cpuQuota: "state",
  restart: "update",
  maxRetryCount: "update",
  healthcheck: "state",
  uploads: "replace",
  ports: "replace",
  volumes: "replace",
  mounts: "state",
  networksAdvanced: "replace",
  user: "replace",
  ulimits: "replace",
  capabilities: "replace",
  logOpts: "replace",
  logDriver: "replace",
  tmpfs: "state",
  init: "state",
  stopTimeout: "replace",
  stopSignal: "replace",
  destroyGraceSeconds: "state",
  wait: "state",
  waitTimeout: "state",
  mustRun: "state",
  hostname: "replace",
  workingDir: "replace",
  readOnly: "replace",
  securityOpts: "replace",
  shmSize: "replace",
  start: "state",
  stdinOpen: "replace",
  publishAllPorts: "replace",
  networkMode: "replace",
  cgroupnsMode: "replace",
  dnsSearches: "replace",
  dns: "replace",
  hosts: "replace",
  groupAdds: "replace",
  sysctls: "replace",
  pidMode: "replace",
  name: "replace",
  removeVolumes: "state",
  privileged: "replace",
};

/** Removing one of these is "same": it is not detected, and the container keeps it. */
const UNNOTICED_WHEN_TAKEN_OUT = new Set([
  "healthcheck",
  "securityOpts",
  "user",
  "workingDir",
  "envs",
  "labels",
  "command",
]);

/** envs.order, ports.order: compared as sets. */
const SETS = new Set(["envs", "ports", "labels"]);

interface ContainerDifference {
  readonly replaces: readonly string[];
  readonly updates: readonly string[];
}

/** Compares the state with the program's inputs. Throws for a property without a recorded case. */
export function diffContainer(
  state: Values,
  inputs: Values,
): ContainerDifference {
  const replaces: string[] = [];
  const updates: string[] = [];
  for (const property of new Set([
    ...Object.keys(inputs),
    ...Object.keys(state).filter((key) => key in rules),
  ])) {
    const [was, wanted] = [state[property], inputs[property]];
    if (equal(comparable(property, was), comparable(property, wanted))) {
      continue;
    }
    if (isEmpty(wanted) && isEmpty(was)) {
      continue;
    }
    if (isEmpty(wanted) && UNNOTICED_WHEN_TAKEN_OUT.has(property)) {
      continue;
    }
    const rule = rules[property];
    if (rule === undefined) {
      throw new Error(
        `the doubles know no record of what a change of a container's ${property} does`,
      );
    }
    (rule === "replace" ? replaces : updates).push(property);
  }
  return { replaces, updates };
}

/** Whether an update of this property reaches the running container. */
export function arrives(property: string): boolean {
  return rules[property] === "update";
}

/**
 * What the state holds after a create: durations in Go's form and cpus with a decimal, so that other spellings differ at every
 * up; memory without memorySwap gets the engine's, which differs after each create and refresh.
 */
export function stateAfterCreate(inputs: Values): Values {
  const { healthcheck, cpus, memory, memorySwap } = inputs;
  return {
    ...inputs,
    ...(isEmpty(healthcheck)
      ? {}
      : { healthcheck: withGoDurations(healthcheck as Values) }),
    ...(typeof cpus === "string" ? { cpus: withDecimal(cpus) } : {}),
    ...(typeof memory === "number" && memorySwap === undefined
      ? { memorySwap: memory * 2 }
      : {}),
  };
}

/** A refresh moreover reads capabilities as the engine names them: without CAP_ in the program, that replaces. */
export function stateAfterRefresh(state: Values): Values {
  const capabilities = state.capabilities as
    { readonly adds?: readonly string[] } | undefined;
  return stateAfterCreate({
    ...state,
    ...(capabilities?.adds === undefined
      ? {}
      : {
          capabilities: {
            ...capabilities,
            adds: capabilities.adds.map((name) =>
              name.startsWith("CAP_") ? name : `CAP_${name}`,
            ),
          },
        }),
  });
}

function comparable(property: string, value: unknown): unknown {
  return SETS.has(property) && Array.isArray(value)
    ? value.map((each) => JSON.stringify(sortKeys(each))).toSorted()
    : value;
}

function sortKeys(value: unknown): unknown {
  return typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).toSorted())
    : value;
}

function isEmpty(value: unknown): boolean {
  return (
    value === undefined ||
    value === null ||
    (Array.isArray(value) && value.length === 0)
  );
}

function withDecimal(cpus: string): string {
  return cpus.includes(".") ? cpus : `${cpus}.0`;
}

function withGoDurations(healthcheck: Values): Values {
  return Object.fromEntries(
    Object.entries(healthcheck).map(([key, value]) => [
      key,
      ["interval", "timeout", "startPeriod"].includes(key)
        ? goDuration(nanoseconds(String(value)))
        : value,
    ]),
  );
}

const units = { h: 3.6e12, m: 6e10, s: 1e9, ms: 1e6, us: 1e3, ns: 1 } as const;

/** Go's ParseDuration for usual durations. */
export function nanoseconds(text: string): number {
  return [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|ns)/g)].reduce(
    (total, [, amount, unit]) =>
      total + Number(amount) * units[unit as keyof typeof units],
    0,
  );
}

function goDuration(ns: number): string {
  if (ns === 0) {
    return "0s";
  }
  if (ns < 1e9) {
    return `${ns / 1e6}ms`;
  }
  const hours = Math.floor(ns / units.h);
  const minutes = Math.floor((ns % units.h) / units.m);
  const rest = (ns % units.m) / units.s;
  if (hours > 0) {
    return `${hours}h${minutes}m${rest}s`;
  }
  return minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`;
}
