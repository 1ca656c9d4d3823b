import { Config, type Output } from "@pulumi/pulumi";
import * as stackConfig from "@pulumi/pulumi/runtime/config.js";
import { secretFields, type SecretField } from "./config-schema.ts";
import {
  ConfigRejected,
  imageReferenceOf,
  postgresMajorOf,
  readConfig,
  type HearthConfig,
  type RawConfig,
} from "./config.ts";
import { readGatewaySettings } from "../gateway-settings.ts";
import { readNamedFile } from "../project-files.ts";

/** The configuration of the program: each secret is an Output, which the engine stores encrypted. */
export type ProgramConfig = {
  readonly [Key in keyof HearthConfig]: Key extends SecretField
    ? Kept<HearthConfig[Key]>
    : HearthConfig[Key];
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

/** The configuration of the running Pulumi program. Throws ConfigRefused with every mistake. */
export function readStackConfig(): ProgramConfig {
  const own = Object.entries(stackConfig.allConfig()).filter(([key]) =>
    key.startsWith(`${NAMESPACE}:`),
  );
  const result = readConfig({
    values: {
      ...Object.fromEntries(
        own.map(([key, value]) => [key.slice(NAMESPACE.length + 1), value]),
      ),
      ...postgresAtFrom(process.env[POSTGRES_AT_VARIABLE]),
    },
    isSecret: (key) => isConfigSecret(`${NAMESPACE}:${key}`),
  });
  const errors = result.ok
    ? [...otherPostgres(result.config), ...unusableFiles(result.config)]
    : result.errors;
  if (!result.ok || errors.length > 0) {
    throw new ConfigRejected(errors);
  }
  return keepSecrets(result.config);
}

/** Secrets are validated as plain text and returned as Pulumi's own Outputs. */
function keepSecrets(config: HearthConfig): ProgramConfig {
  const settings = new Config(NAMESPACE);
  const kept = secretFields.flatMap((key) => {
    const value = config[key as SecretField];
    if (value === undefined) {
      return [];
    }
    return [
      [
        key,
        typeof value === "string"
          ? settings.requireSecret(key)
          : Object.fromEntries(
              Object.keys(value).map((name) => [
                name,
                settings
                  .requireSecretObject<Record<string, string>>(key)
                  .apply((all) => all[name] ?? ""),
              ]),
            ),
      ],
    ];
  });
  return { ...config, ...Object.fromEntries(kept) } as ProgramConfig;
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
function unusableFiles(config: HearthConfig): readonly string[] {
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
