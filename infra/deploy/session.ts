import type { ConfigMap } from "@pulumi/pulumi/automation/config.js";
import type { Stack, UpOptions } from "@pulumi/pulumi/automation/stack.js";
import type {
  Runtime,
  HearthConfig,
  HostSettings,
} from "../config/config-schema.ts";
import {
  readConfig,
  readHostSettings,
  type RawConfig,
} from "../config/config.ts";
import { accept, runtimeOf } from "../config/program-config.ts";
import type { StackEngine, StackEngines } from "../engine.ts";
import { PARALLEL, PROJECT_NAME } from "./deploy-stack.ts";

/** Context of every verb of `npm run deploy`. */
export interface Session {
  readonly stack: Stack;
  readonly runtime: Runtime;
  /** null if the configuration of the hosts has a mistake, and on Kubernetes. */
  readonly hosts: HostSettings | null;
  /** With an empty address if the configuration of the hosts has a mistake: `cancel` works nevertheless. */
  readonly engines: StackEngines;
  /** Prints one line for the operator. */
  readonly say: (line: string) => void;
  /** The engine's options: parallelism and receivers of events and output. */
  readonly options: Pick<
    UpOptions,
    "parallel" | "showSecrets" | "onEvent" | "onOutput" | "color"
  >;
}

const NAMESPACE = "hearth:";

/** Opens a session on a stack. */
export async function openSession(
  stack: Stack,
  say: Session["say"],
  options: Partial<Session["options"]> = {},
): Promise<Session> {
  forgetSettings(stack);
  const values = await readOwnValues(stack);
  // Any other runtime is reported with the other mistakes: `cancel` works nevertheless.
  const isCluster = values["runtime"] === "kubernetes";
  const read = readHostSettings(values);
  const hosts = read.ok && !isCluster ? read.config : null;
  return {
    stack,
    runtime: isCluster ? "kubernetes" : "docker",
    hosts,
    engines: { a: engineOf(stack, hosts, "a"), b: engineOf(stack, hosts, "b") },
    say,
    // Otherwise the SDK decrypts the secrets of the summary, which takes half a second; they are not used.
    options: { parallel: PARALLEL, showSecrets: false, ...options },
  };
}

/** The configuration of a stack on two hosts as the program reads it. Throws ConfigRejected with every mistake. */
export async function readSettings({
  stack,
}: Pick<Session, "stack">): Promise<HearthConfig> {
  const raw = await readRawSettings(stack);
  runtimeOf(raw.values);
  return accept(readConfig(raw), () => []);
}

/** Hearth's settings, secrets decrypted, and which of them are stored encrypted. */
export async function readRawSettings(stack: Stack): Promise<RawConfig> {
  const own = await readOwn(stack);
  return {
    values: valuesOf(own),
    isSecret: (key) => own[key]?.secret === true,
  };
}

/** Hearth's settings by key without namespace, secrets decrypted; objects and lists as JSON. */
export async function readOwnValues(
  stack: Stack,
): Promise<Readonly<Record<string, string>>> {
  return valuesOf(await readOwn(stack));
}

/** Decrypting them takes a second of processor time. */
const known = new WeakMap<Stack, Promise<ConfigMap>>();

/** Clears the cache after a change of settings. */
export function forgetSettings(stack: Stack): void {
  known.delete(stack);
}

async function readOwn(stack: Stack): Promise<ConfigMap> {
  const all = known.get(stack) ?? stack.getAllConfig();
  known.set(stack, all);
  return Object.fromEntries(
    Object.entries(await all).flatMap(([key, setting]) =>
      key.startsWith(NAMESPACE)
        ? [[key.slice(NAMESPACE.length), setting] as const]
        : [],
    ),
  );
}

function valuesOf(own: ConfigMap): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(own).map(([key, { value }]) => [key, value]),
  );
}

function engineOf(
  { name: stackName }: Pick<Stack, "name">,
  hosts: HostSettings | null,
  name: "a" | "b",
): StackEngine {
  return {
    endpoint: hosts?.hosts[name].docker ?? "",
    sshOpts: hosts?.hosts[name].sshOpts ?? [],
    prefix: hosts?.prefix ?? "hearth",
    // As in the program: without the organization, if the name has one.
    stack: `${PROJECT_NAME}/${stackName.split("/").at(-1)}`,
  };
}
