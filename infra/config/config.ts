import { RunError } from "@pulumi/pulumi";
import type { z } from "zod";
import { unknownName } from "../../core/config/problem.ts";
import { fixCommand, removeCommand } from "./config-fixes.ts";
import {
  isStructured,
  partsOf,
  requiredWithin,
  settingAt,
} from "./config-lookup.ts";
import {
  configSchema,
  hostSettingsSchema,
  secretFields,
} from "./config-schema.ts";
import { pinnedImages, type PulledImage } from "../images/images.ts";
import { isPrivate } from "../private-addresses.ts";

/** The validated configuration of a stack, secrets in plain text, for commands on the operator's machine. Times in seconds, memory in MiB. */
export type HearthConfig = Readonly<z.output<typeof configSchema>>;
/** The part of the configuration that describes what the hosts must offer. */
export type HostSettings = Readonly<z.output<typeof hostSettingsSchema>>;
export type HostName = "a" | "b";

export interface RawConfig {
  /** Keys without their namespace; objects and lists as JSON. */
  readonly values: Readonly<Record<string, string>>;
  readonly isSecret: (key: string) => boolean;
}

export type ConfigResult<T = HearthConfig> =
  | { readonly ok: true; readonly config: T }
  | { readonly ok: false; readonly errors: readonly string[] };

/** Thrown before anything is registered; the message is one sentence a line, shown without a stack trace. */
export class ConfigRejected extends RunError {
  constructor(errors: readonly string[]) {
    super(
      `${errors.length === 1 ? "a mistake" : `${errors.length} mistakes`} in the stack's configuration; nothing was changed:\n${errors.map((each) => `  ${each}`).join("\n")}`,
    );
  }
}

/** Reports every mistake at once; each is a sentence that ends with the command that fixes it. */
export function readConfig(raw: RawConfig): ConfigResult {
  const values = Object.fromEntries(
    Object.entries(raw.values).map(([key, text]) => [key, fromText(key, text)]),
  );
  const parsed = configSchema.safeParse(values);
  const errors = parsed.success
    ? []
    : parsed.error.issues.flatMap((issue) => describeIssue(issue, values));
  for (const key of secretFields) {
    if (key in values && !raw.isSecret(key)) {
      errors.push(
        `hearth:${key} is stored in plain text; change it, then store it encrypted: ${fixCommand([key])}`,
      );
    }
  }
  if (parsed.success) {
    errors.push(...crossCheck(parsed.data));
  }
  return parsed.success && errors.length === 0
    ? { ok: true, config: parsed.data }
    : { ok: false, errors };
}

/** The part of the configuration that describes the hosts and what they must offer. */
export function readHostSettings(
  values: RawConfig["values"],
): ConfigResult<HostSettings> {
  const wanted = Object.fromEntries(
    Object.entries(values)
      .filter(([key]) => key in hostSettingsSchema.shape)
      .map(([key, text]) => [key, fromText(key, text)]),
  );
  const parsed = hostSettingsSchema.safeParse(wanted);
  return parsed.success
    ? { ok: true, config: parsed.data }
    : {
        ok: false,
        errors: parsed.error.issues.flatMap((issue) =>
          describeIssue(issue, wanted),
        ),
      };
}

/** `pulumi config set --path` stores JSON; a plain value is the text itself. */
function fromText(key: string, text: string): unknown {
  const setting = settingAt([key]);
  if (
    setting === undefined ||
    !isStructured(setting) ||
    !/^\s*[[{]/.test(text)
  ) {
    return text;
  }
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function describeIssue(
  issue: z.core.$ZodIssue,
  values: Readonly<Record<string, unknown>>,
): string[] {
  const path = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const section = path.length === 0 ? "hearth" : `hearth:${path.join(".")}`;
      const unknown = unknownName("setting", key, knownKeys(path));
      return `${section}: ${unknown}: ${removeCommand([...path, key])}`;
    });
  }
  if (issue.code === "invalid_key") {
    return [sentence(path, issue.issues[0]?.message ?? issue.message)];
  }
  const missing = valueAt(values, path) === undefined;
  // For a missing group, its required settings.
  if (missing) {
    return requiredWithin(path).map((each) => sentence(each, "is required"));
  }
  // A value cannot be set below a text: remove that first.
  if (
    issue.code === "invalid_type" &&
    /^(object|record)$/.test(issue.expected)
  ) {
    return [
      `hearth:${path.join(".")} must be a group of settings: ${removeCommand(path)}`,
    ];
  }
  return [sentence(path, issue.message)];
}

function sentence(path: readonly string[], what: string): string {
  return `hearth:${path.join(".")} ${what}: ${fixCommand(path)}`;
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, step) =>
      typeof at === "object" && at !== null
        ? (at as Record<string, unknown>)[step]
        : undefined,
    value,
  );
}

function knownKeys(path: readonly string[]): readonly string[] {
  const group = settingAt(path);
  return group === undefined ? [] : Object.keys(partsOf(group));
}

/** Mistakes that a single setting cannot show. */
function crossCheck(config: HearthConfig): readonly string[] {
  return [
    ...hostMistakes(config),
    ...imageMistakes(config),
    ...(config.masterKeyPrevious !== undefined &&
    config.masterKeyPreviousUntil === undefined
      ? [
          sentence(
            ["masterKeyPreviousUntil"],
            "is required with masterKeyPrevious, which must expire",
          ),
        ]
      : []),
    ...edgeMistakes(config),
    ...(config.offsiteTarget === undefined
      ? []
      : required(
          config,
          ["offsiteIdentity", "offsiteRcloneConfig"],
          "with offsiteTarget",
        )),
  ];
}

function hostMistakes(config: HearthConfig): readonly string[] {
  const { hosts } = config;
  const errors: string[] = [];
  if (hosts.a.docker === hosts.b.docker) {
    errors.push(
      sentence(["hosts", "b", "docker"], "is the same engine as host A's"),
    );
  }
  if (hosts.a.address === hosts.b.address) {
    errors.push(
      sentence(["hosts", "b", "address"], "is the same address as host A's"),
    );
  }
  for (const name of ["a", "b"] as const) {
    for (const [index, address] of hosts[name].publish.entries()) {
      if (!isPrivate(address) && !servesHttps(config)) {
        errors.push(
          sentence(
            ["hosts", name, "publish", String(index)],
            `is ${address}, a public address: only HTTPS is served there, and edge.hostname is not set`,
          ),
        );
      }
    }
  }
  return errors;
}

function imageMistakes(config: HearthConfig): readonly string[] {
  return Object.entries(config.images).flatMap(([name, reference]) =>
    reference === undefined ||
    reference.includes("@sha256:") ||
    config.imagesWithoutDigest === "allow"
      ? []
      : [
          sentence(
            ["images", name],
            `is ${reference}, which has no digest, so its content can change (for images that exist only on the hosts: npx pulumi config set hearth:imagesWithoutDigest allow)`,
          ),
        ],
  );
}

function edgeMistakes(config: HearthConfig): readonly string[] {
  const { edge } = config;
  const errors: string[] = [];
  const cause = `(edge.tls is ${edge.tls})`;
  if (edge.tls !== "none" && !servesHttps(config)) {
    errors.push(sentence(["edge", "hostname"], `is required ${cause}`));
  }
  if (edge.tls === "none" && servesHttps(config)) {
    errors.push(
      sentence(
        ["edge", "tls"],
        "is none, but a host name is set, which is served with a certificate",
      ),
    );
  }
  if (edge.hostname !== undefined && edge.hostname === edge.notesHostname) {
    errors.push(
      sentence(
        ["edge", "notesHostname"],
        "is the gateway's host name; the notes need a separate one",
      ),
    );
  }
  if (edge.tls === "acme" && edge.email === undefined) {
    errors.push(sentence(["edge", "email"], `is required ${cause}`));
  }
  return edge.tls === "files"
    ? [...errors, ...required(config, ["edgeCertificate", "edgeKey"], cause)]
    : errors;
}

function required(
  config: HearthConfig,
  keys: readonly (keyof HearthConfig)[],
  cause: string,
): readonly string[] {
  return keys
    .filter((key) => config[key] === undefined)
    .map((key) => sentence([key], `is required ${cause}`));
}

/** Whether the edge serves a host name, the gateway's or the notes', with a certificate. */
export function servesHttps({ edge }: Pick<HearthConfig, "edge">): boolean {
  return edge.hostname !== undefined || edge.notesHostname !== undefined;
}

/** The image to run: the operator's, else the pinned one. */
export function imageReferenceOf(
  config: Pick<HearthConfig, "images">,
  name: PulledImage,
): string {
  return config.images[name] ?? pinnedImages[name];
}

/** The major version in the name of an image of Postgres; undefined where an operator's own name does not include it. */
export function postgresMajorOf(reference: string): string | undefined {
  return /postgres:(\d+)/.exec(reference)?.[1];
}
