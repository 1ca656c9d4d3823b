import { RunError } from "@pulumi/pulumi";
import type { z } from "zod";
import { parseJson } from "../../core/json.ts";
import { unknownName } from "../../core/config/problem.ts";
import { fixCommand, removeCommand } from "./config-fixes.ts";
import {
  isStructured,
  partsOf,
  requiredWithin,
  settingAt,
  type Setting,
} from "./config-lookup.ts";
import { configSchema, hostSettingsSchema } from "./config-schema.ts";
import { certificateMistakes } from "./edge-certificate.ts";
import { listenersOn, servesHttps } from "./listeners.ts";
import { twoHosts, type StackSettings } from "./stack-settings.ts";
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

/** Reports every mistake of a stack on two hosts at once; each is a sentence that ends with the command that fixes it. */
export function readConfig(raw: RawConfig): ConfigResult {
  return readSettingsOf(twoHosts, configSchema, raw, crossCheck);
}

/** Reports every mistake of a kind of stack at once; `crossCheck` those that a single setting cannot show. */
export function readSettingsOf<Schema extends z.ZodObject>(
  settings: StackSettings,
  schema: Schema,
  raw: RawConfig,
  crossCheck: (config: z.output<Schema>) => readonly string[],
): ConfigResult<z.output<Schema>> {
  const values = fromTexts(raw.values, schema);
  const parsed = schema.safeParse(values);
  const errors = parsed.success
    ? []
    : parsed.error.issues.flatMap((issue) =>
        describeIssue(issue, values, settings),
      );
  for (const key of settings.secrets) {
    if (key in values && !raw.isSecret(key)) {
      errors.push(
        `hearth:${key} is stored in plain text; change it, then store it encrypted: ${fixCommand([key], settings)}`,
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
  const wanted = fromTexts(
    Object.fromEntries(
      Object.entries(values).filter(([key]) => key in hostSettingsSchema.shape),
    ),
    configSchema,
  );
  const parsed = hostSettingsSchema.safeParse(wanted);
  const errors = parsed.success
    ? portMistakes(parsed.data)
    : parsed.error.issues.flatMap((issue) =>
        describeIssue(issue, wanted, twoHosts),
      );
  return parsed.success && errors.length === 0
    ? { ok: true, config: parsed.data }
    : { ok: false, errors };
}

function fromTexts(
  values: RawConfig["values"],
  schema: z.ZodObject,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(values).map(([key, text]) => [
      key,
      fromText(settingAt([key], schema), text),
    ]),
  );
}

/** `pulumi config set --path` stores JSON; a plain value is the text itself. */
function fromText(setting: Setting | undefined, text: string): unknown {
  if (
    setting === undefined ||
    !isStructured(setting) ||
    !/^\s*[[{]/.test(text)
  ) {
    return text;
  }
  return parseJson(text) ?? text;
}

function describeIssue(
  issue: z.core.$ZodIssue,
  values: Readonly<Record<string, unknown>>,
  settings: StackSettings,
): string[] {
  const path = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => describeUnknown(path, key, settings));
  }
  if (issue.code === "invalid_key") {
    return [
      sentence(path, issue.issues[0]?.message ?? issue.message, settings),
    ];
  }
  const missing = valueAt(values, path) === undefined;
  // For a missing group, its required settings.
  if (missing) {
    return requiredWithin(path, settings.schema).map((each) =>
      sentence(each, "is required", settings),
    );
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
  return [sentence(path, issue.message, settings)];
}

/** A setting that this kind of stack does not have: with the reason if the other kind has it, else with a similar name. */
function describeUnknown(
  path: readonly string[],
  key: string,
  { schema, absent }: StackSettings,
): string {
  const at = [...path, key];
  const reason = absent[at.join(".")];
  if (reason !== undefined) {
    return `hearth:${at.join(".")} ${reason}: ${removeCommand(at)}`;
  }
  const section = path.length === 0 ? "hearth" : `hearth:${path.join(".")}`;
  const unknown = unknownName("setting", key, knownKeys(path, schema));
  return `${section}: ${unknown}: ${removeCommand(at)}`;
}

/** A mistake in one setting, with the command that fixes it. */
export function sentence(
  path: readonly string[],
  what: string,
  settings: StackSettings = twoHosts,
): string {
  return `hearth:${path.join(".")} ${what}: ${fixCommand(path, settings)}`;
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

function knownKeys(
  path: readonly string[],
  schema: z.ZodObject,
): readonly string[] {
  const group = settingAt(path, schema);
  return group === undefined ? [] : Object.keys(partsOf(group));
}

/** Mistakes that a single setting cannot show. */
function crossCheck(config: HearthConfig): readonly string[] {
  return [
    ...hostMistakes(config),
    ...portMistakes(config),
    ...imageMistakes(config),
    ...edgeMistakes(config),
    ...dependentMistakes(config, twoHosts),
  ];
}

/** Settings that others require, of every kind of stack. */
export function dependentMistakes(
  config: Pick<
    HearthConfig,
    | "masterKeyPrevious"
    | "masterKeyPreviousUntil"
    | "offsiteTarget"
    | "offsiteIdentity"
    | "offsiteRcloneConfig"
  >,
  settings: StackSettings,
): readonly string[] {
  return [
    ...(config.masterKeyPrevious === undefined
      ? []
      : required(
          config,
          ["masterKeyPreviousUntil"],
          "with masterKeyPrevious, which must expire",
          settings,
        )),
    ...(config.offsiteTarget === undefined
      ? []
      : required(
          config,
          ["offsiteIdentity", "offsiteRcloneConfig"],
          "with offsiteTarget",
          settings,
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

/** Two services at one address and port of a host: Docker would notice after it has removed the running containers. */
function portMistakes(settings: HostSettings): readonly string[] {
  const defaults = configSchema.shape.ports.parse(undefined);
  const errors = (["a", "b"] as const).flatMap((host) => {
    const listeners = listenersOn(host, settings);
    return listeners.flatMap((later, index) => {
      const earlier = listeners
        .slice(0, index)
        .find(
          ({ address, port }) =>
            address === later.address && port === later.port,
        );
      if (earlier === undefined) {
        return [];
      }
      // The one that was changed is wrong.
      const [wrong, other] =
        later.port === defaults[later.setting]
          ? [earlier, later]
          : [later, earlier];
      return [
        sentence(
          ["ports", wrong.setting],
          `is ${wrong.port}, which ports.${other.setting} has too`,
        ),
      ];
    });
  });
  return [...new Set(errors)];
}

/** Images without a digest, unless they are allowed. */
export function imageMistakes(
  config: {
    readonly images: Readonly<Record<string, string | undefined>>;
    readonly imagesWithoutDigest: string;
  },
  settings: StackSettings = twoHosts,
): readonly string[] {
  return Object.entries(config.images).flatMap(([name, reference]) =>
    reference === undefined ||
    reference.includes("@sha256:") ||
    config.imagesWithoutDigest === "allow"
      ? []
      : [
          sentence(
            ["images", name],
            `is ${reference}, which has no digest, so its content can change (for images that exist only on the ${settings === twoHosts ? "hosts" : "nodes"}: npx pulumi config set hearth:imagesWithoutDigest allow)`,
            settings,
          ),
        ],
  );
}

function edgeMistakes(config: HearthConfig): readonly string[] {
  const { edge } = config;
  const errors: string[] = [...hostnameMistakes(config, twoHosts)];
  if (edge.tls === "none" && servesHttps(config)) {
    errors.push(
      sentence(
        ["edge", "tls"],
        "is none, but a host name is set, which is served with a certificate",
      ),
    );
  }
  if (edge.tls === "acme" && edge.email === undefined) {
    errors.push(
      sentence(["edge", "email"], `is required (edge.tls is ${edge.tls})`),
    );
  }
  return errors;
}

/** Host names and the files of their certificate, of every kind of stack. */
interface HostnameSettings {
  readonly edge: {
    readonly tls: string;
    readonly hostname?: string | undefined;
    readonly notesHostname?: string | undefined;
    /** On Kubernetes. */
    readonly supervisorHostname?: string | undefined;
  };
  readonly edgeCertificate?: string | undefined;
  readonly edgeKey?: string | undefined;
}

/** Mistakes in the host names and the files of their certificate. */
export function hostnameMistakes(
  config: HostnameSettings,
  settings: StackSettings,
): readonly string[] {
  const { edge } = config;
  const cause = `(edge.tls is ${edge.tls})`;
  return [
    ...(edge.tls !== "none" && !servesHttps(config)
      ? [sentence(["edge", "hostname"], `is required ${cause}`, settings)]
      : []),
    ...(edge.hostname !== undefined && edge.hostname === edge.notesHostname
      ? [
          sentence(
            ["edge", "notesHostname"],
            "is the gateway's host name; the notes need a separate one",
            settings,
          ),
        ]
      : []),
    ...(edge.tls === "files"
      ? [
          ...required(config, ["edgeCertificate", "edgeKey"], cause, settings),
          ...ownCertificateMistakes(config, settings),
        ]
      : []),
  ];
}

/** Mistakes in the operator's own certificate, once both of its settings are there. */
function ownCertificateMistakes(
  { edge, edgeCertificate: certificate, edgeKey: key }: HostnameSettings,
  settings: StackSettings,
): readonly string[] {
  if (certificate === undefined || key === undefined) {
    return [];
  }
  const names = [edge.hostname, edge.notesHostname, edge.supervisorHostname];
  return certificateMistakes(
    { certificate, key },
    names.filter((name) => name !== undefined),
    settings === twoHosts ? fixCommand(["edge", "tls"], settings) : undefined,
  ).map(({ setting, what }) => sentence([setting], what, settings));
}

/** Those of the settings that are missing, although `cause` requires them. */
export function required<Config extends object>(
  config: Config,
  keys: readonly (keyof Config & string)[],
  cause: string,
  settings: StackSettings = twoHosts,
): readonly string[] {
  return keys
    .filter((key) => config[key] === undefined)
    .map((key) => sentence([key], `is required ${cause}`, settings));
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
