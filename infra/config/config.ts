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
import { crossCheck, portMistakes, sentence } from "./config-mistakes.ts";
import {
  configSchema,
  hostSettingsSchema,
  type HearthConfig,
  type HostSettings,
} from "./config-schema.ts";
import { twoHosts, type StackSettings } from "./stack-settings.ts";
import { pinnedImages, type PulledImage } from "../images/images.ts";

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
      `hearth:${path.join(".")} ${issue.issues[0]?.message ?? issue.message}: ${removeCommand(path)}`,
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
