import { hash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Home } from "../home/home.ts";
import {
  changeSecrets,
  handOver,
  readOrCreateSecrets,
  readSecretsFile,
} from "../home/secrets.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import {
  forOwnStack,
  installationOfSupervisor,
} from "../../core/installation.ts";
import { codeOf, Failure } from "../../core/failure.ts";
import { identityIn, recipientOf } from "./age.ts";
import { openRemote, type Remote } from "./rclone.ts";

export interface OffsiteSettings {
  /** In rclone's syntax: `nas:backups`, `b2:bucket/folder`, `/mnt/disk`. */
  readonly target: string;
  /** `AGE-SECRET-KEY-1…` */
  readonly identity: string;
}

/** OFFSITE_TARGET and OFFSITE_IDENTITY (or files with them), else the values stored by `hearth offsite setup` in secrets.json. */
export function findOffsite(
  home: Home,
  env: Environment,
): OffsiteSettings | undefined {
  const stored = readSecretsFile(home);
  const target = readVariable("OFFSITE_TARGET", env) ?? stored?.offsiteTarget;
  const identity =
    readVariable("OFFSITE_IDENTITY", env) ?? stored?.offsiteIdentity;
  return target === undefined || identity === undefined
    ? undefined
    : { target, identity };
}

/**
 * What is wrong with a target; null if rclone can take it. A name that starts with "-" would be an option. Passwords of rclone's connection strings (`:webdav,pass=…:PATH`) would be in
 * arguments and errors.
 */
export function faultOfTarget(target: string): string | null {
  return /^[\w.+@][\w.+@ -]*:|^\//.test(target)
    ? null
    : `"${target.replace(/,.*/s, ",…")}" is not a valid target: it must be REMOTE:PATH, with a remote of \`rclone listremotes\`, or an absolute path on another disk.`;
}

export function storeOffsite(
  home: Home,
  { target, identity }: OffsiteSettings,
): void {
  // The first start creates all secrets; with existing data, missing secrets are an error.
  if (readSecretsFile(home) === undefined) {
    readOrCreateSecrets(home);
  }
  changeSecrets(home, { offsiteTarget: target, offsiteIdentity: identity });
}

/** What sets a target: containers take it from the settings of their deployment, which also adds rclone to their image. */
export function setUpCommand(env: Environment): string {
  switch (installationOfSupervisor(env)) {
    case "embedded":
      return "hearth offsite setup REMOTE:PATH";
    case "two-hosts":
    case "stack-on-kubernetes":
      return forOwnStack(
        "npx pulumi config set hearth:offsiteTarget REMOTE:PATH",
        env,
      );
    case "kubernetes":
      return "helm upgrade --set offsite.target=REMOTE:PATH …";
  }
}

export function noTarget(env: Environment): string {
  return `no off-site target is configured: run \`${setUpCommand(env)}\` (docs/off-site.md).`;
}

export function needOffsite(home: Home, env: Environment): OffsiteSettings {
  const settings = findOffsite(home, env);
  if (settings !== undefined) {
    return settings;
  }
  throw new Failure(noTarget(env));
}

/** The identity in a key file of `hearth offsite key` or age-keygen. */
export async function readIdentity(file: string): Promise<string> {
  try {
    return await identityIn(readFileSync(file, "utf8"));
  } catch (error) {
    if (error instanceof Failure) {
      throw error;
    }
    throw new Failure(
      `cannot read ${file} (${codeOf(error)}): pass a file with the identity printed by \`hearth offsite key\` with --key-file.`,
    );
  }
}

/** One installation's folder at a target. */
export interface OffsitePlace {
  readonly remote: Remote;
  readonly settings: OffsiteSettings;
  readonly recipient: string;
  /** Its name at the target: each identity has a separate folder. */
  readonly folder: string;
  /** A local directory for encrypted files that are not uploaded yet. */
  readonly staging: string;
}

/** `use` distinguishes places that are used concurrently. Throws a Failure if rclone cannot take the target. */
export async function openOffsite(
  home: Home,
  env: Environment,
  settings: OffsiteSettings,
  use: string,
): Promise<OffsitePlace> {
  const fault = faultOfTarget(settings.target);
  if (fault !== null) {
    throw new Failure(fault);
  }
  const recipient = await recipientOf(settings.identity);
  const folder = `hearth-${hash("sha256", recipient).slice(0, 8)}`;
  const staging = stagingOf(home, use);
  return {
    remote: openRemote({
      target: settings.target,
      folder,
      env,
      config: rcloneConfig(home, env),
      nameList: `${staging}-names`,
    }),
    settings,
    recipient,
    folder,
    staging,
  };
}

/** Where a use keeps its files on this machine. */
export function stagingOf(home: Home, use: string): string {
  return join(home.backups, ".offsite", use);
}

/** OFFSITE_RCLONE_CONFIG is the content of a configuration; else `rclone.conf` in the home; else rclone's own. */
function rcloneConfig(home: Home, env: Environment): string | undefined {
  const given = readVariable("OFFSITE_RCLONE_CONFIG", env);
  if (given !== undefined) {
    mkdirSync(home.handed, { recursive: true, mode: 0o700 });
    // rclone writes renewed tokens into it, so it cannot be the read-only file of a secret.
    return handOver(home, "rclone.conf", `${given}\n`);
  }
  const own = join(home.root, "rclone.conf");
  return existsSync(own) ? own : undefined;
}
