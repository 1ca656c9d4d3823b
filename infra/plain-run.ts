import { getProject, getStack, RunError } from "@pulumi/pulumi";
import {
  readConfig,
  type ConfigResult,
  type RawConfig,
} from "./config/config.ts";
import type { HearthConfig, Runtime } from "./config/config-schema.ts";
import { rejectExpiredCertificate } from "./config/program-config.ts";
import { kubernetes, twoHosts } from "./config/stack-settings.ts";
import type { KubernetesConfig } from "./kubernetes/kubernetes-schema.ts";
import { findChangedPasswords } from "./deploy/changed-passwords.ts";
import { findOtherKeys, keysOn } from "./deploy/kept-settings.ts";
import {
  rejectUnusableClusterSettings,
  rejectUnusableSettings,
} from "./deploy/operators-files.ts";
import { stackEngine } from "./engine.ts";

/**
 * For a plain `pulumi` command: what `npm run deploy` checks before it runs the program, as far as it needs no state. Throws one sentence.
 * Other mistakes of the configuration are reported by the program.
 */
export async function checkPlainRun(
  raw: RawConfig,
  runtime: Runtime,
): Promise<void> {
  if (raw.values["rotation"] !== undefined) {
    throw new RunError(
      `a rotation is unfinished; nothing was changed: \`npm run deploy -- up --stack ${getStack()}\` names the command that completes it.`,
    );
  }
  if (runtime === "kubernetes") {
    const { readKubernetesConfig } =
      await import("./kubernetes/kubernetes-config.ts");
    const read: ConfigResult<KubernetesConfig> = readKubernetesConfig(raw);
    if (read.ok) {
      rejectExpiredCertificate(read.config, kubernetes);
      await rejectUnusableClusterSettings(read.config);
    }
    return;
  }
  const read = readConfig(raw);
  if (read.ok) {
    rejectExpiredCertificate(read.config, twoHosts);
    await rejectUnusableSettings(read.config);
    await rejectChangedSecrets(read.config);
  }
}

/** Throws for secrets that an `up` must not change, or does not change in their running servers. */
async function rejectChangedSecrets(config: HearthConfig): Promise<void> {
  const stack = `${getProject()}/${getStack()}`;
  const engines = {
    a: stackEngine(config, "a", stack),
    b: stackEngine(config, "b", stack),
  };
  const [keys, passwords] = await Promise.all([
    keysOn(engines, config),
    findChangedPasswords(engines, config),
  ]);
  const [found] = [...findOtherKeys(engines, config, keys), ...passwords];
  if (found !== undefined) {
    throw new RunError(`${found.what}; nothing was changed: ${found.fix}.`);
  }
}
