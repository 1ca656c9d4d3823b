import { Config, type Output } from "@pulumi/pulumi";
import * as stackConfig from "@pulumi/pulumi/runtime/config.js";
import {
  runtime,
  secretFields,
  type Runtime,
  type SecretField,
  type HearthConfig,
} from "./config-schema.ts";
import {
  ConfigRejected,
  imageReferenceOf,
  postgresMajorOf,
  readConfig,
  type ConfigResult,
  type RawConfig,
} from "./config.ts";
import {
  expiredCertificate,
  sentence,
  type HostnameSettings,
} from "./config-mistakes.ts";
import type { StackSettings } from "./stack-settings.ts";
import { readGatewaySettings } from "../gateway-settings.ts";
import { readNamedFile } from "../project-files.ts";

/** The configuration of the program on two hosts. */
export type ProgramConfig = WithOutputs<HearthConfig, SecretField>;

/** A configuration whose secrets are Outputs, which the engine stores encrypted. */
export type WithOutputs<Settings, Secret extends string> = {
  readonly [Key in keyof Settings]: Key extends Secret
    ? Kept<Settings[Key]>
    : Settings[Key];
};
type Kept<Secret> = Secret extends string
  ? Output<string>
  : Secret extends object
    ? Readonly<Record<string, Output<string>>>
    : Secret;
const NAMESPACE = "hearth";

/** HOST:PORT of Postgres for this machine and one run; overrides hearth:postgresAt. */
export const POSTGRES_AT_VARIABLE = "HEARTH_POSTGRES_AT";

/** Exported, but missing in the package's types. */
const { isConfigSecret } = stackConfig as unknown as {
  readonly isConfigSecret: (key: string) => boolean;
};

/** The configuration of the running Pulumi program on two hosts. Throws ConfigRejected with every mistake. */
export function readStackConfig(): ProgramConfig {
  const raw = readRawConfig();
  const values = {
    ...raw.values,
    ...postgresAtFrom(process.env[POSTGRES_AT_VARIABLE]),
  };
  const config = accept(readConfig({ ...raw, values }), (read) => [
    ...otherPostgres(read),
    ...unusableFiles(read),
  ]);
  return withOutputs<HearthConfig, SecretField>(config, secretFields);
}

/** Hearth's settings of the running program. */
export function readRawConfig(): RawConfig {
  const own = Object.entries(stackConfig.allConfig()).filter(([key]) =>
    key.startsWith(`${NAMESPACE}:`),
  );
  return {
    values: Object.fromEntries(
      own.map(([key, value]) => [key.slice(NAMESPACE.length + 1), value]),
    ),
    isSecret: (key) => isConfigSecret(`${NAMESPACE}:${key}`),
  };
}

/** Where the stack of these settings runs. Throws ConfigRejected for an unknown runtime: all other settings depend on it. */
export function runtimeOf(values: RawConfig["values"]): Runtime {
  const read = runtime.safeParse(values["runtime"]);
  if (!read.success) {
    throw new ConfigRejected(
      read.error.issues.map(({ message }) => sentence(["runtime"], message)),
    );
  }
  return read.data;
}

/** A configuration without mistakes, its own and those that `check` finds in it. Throws ConfigRejected with all of them. */
export function accept<T>(
  result: ConfigResult<T>,
  check: (config: T) => readonly string[],
): T {
  const errors = result.ok ? check(result.config) : result.errors;
  if (!result.ok || errors.length > 0) {
    throw new ConfigRejected(errors);
  }
  return result.config;
}

/** Throws ConfigRejected for an expired certificate: every client would reject it. Only for what deploys one. */
export function rejectExpiredCertificate(
  config: HostnameSettings,
  settings: StackSettings,
): void {
  const expired = expiredCertificate(config, settings);
  if (expired !== null) {
    throw new ConfigRejected([`${expired.what}: ${expired.fix}`]);
  }
}

/** Secrets are validated as plain text and returned as Pulumi's own Outputs. */
export function withOutputs<Settings extends object, Secret extends string>(
  config: Settings,
  secrets: readonly string[],
): WithOutputs<Settings, Secret> {
  const settings = new Config(NAMESPACE);
  const given = config as Readonly<Record<string, unknown>>;
  const kept = secrets.flatMap((key) => {
    const value = given[key];
    if (value === undefined) {
      return [];
    }
    return [
      [
        key,
        typeof value === "string"
          ? settings.requireSecret(key)
          : Object.fromEntries(
              Object.keys(value as object).map((name) => [
                name,
                settings
                  .requireSecretObject<Record<string, string>>(key)
                  .apply((all) => all[name] ?? ""),
              ]),
            ),
      ],
    ];
  });
  return {
    ...config,
    ...Object.fromEntries(kept),
  } as WithOutputs<Settings, Secret>;
}

/** An image with a different major version than the data would start with an empty database. */
function otherPostgres(config: HearthConfig): readonly string[] {
  const image = imageReferenceOf(config, "postgres");
  const major = postgresMajorOf(image);
  const known = config.postgresVersion.split(".")[0];
  return major === undefined || major === known
    ? []
    : [
        `hearth:postgresVersion is ${config.postgresVersion}, the version of the data, but the image ${image.split("@")[0]} has Postgres ${major}: run \`npm run deploy -- upgrade postgres\` to copy the data; without data: npx pulumi config set hearth:postgresVersion ${major}`,
      ];
}

/** Mistakes in files that settings name, found before anything is registered. */
export function unusableFiles(
  config: Pick<HearthConfig, "gatewayConfig" | "supervisorConfig">,
): readonly string[] {
  const { supervisorConfig } = config;
  return [
    () => readGatewaySettings(config, {}),
    () =>
      supervisorConfig === undefined ||
      readNamedFile("hearth:supervisorConfig", supervisorConfig),
  ].flatMap((read) => {
    try {
      read();
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
}

function postgresAtFrom(text: string | undefined): RawConfig["values"] {
  if (text === undefined) {
    return {};
  }
  const [, host = "", port = ""] = /^(.*):([^:]*)$/.exec(text) ?? [];
  return { postgresAt: JSON.stringify({ host, port }) };
}
