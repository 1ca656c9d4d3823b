import { confirm } from "@clack/prompts";
import type { ConfigResult } from "../config/config.ts";
import { accept, rejectExpiredCertificate } from "../config/program-config.ts";
import { kubernetes } from "../config/stack-settings.ts";
import { readKubernetesConfig } from "../kubernetes/kubernetes-config.ts";
import type { KubernetesConfig } from "../kubernetes/kubernetes-schema.ts";
import { typedHelm, typedKubectl } from "../kubernetes/kubectl.ts";
import { SUPERVISOR_POD } from "../kubernetes/release-name.ts";
import { given } from "./answer.ts";
import { cancelVerb } from "./cancel-verb.ts";
import { UsageError, USAGE, type Flags } from "./flags.ts";
import {
  announceClusterMigrations,
  backUpClusterFirst,
} from "./kubernetes-backup-first.ts";
import { rejectUnusableClusterSettings } from "./operators-files.ts";
import { reportChanges } from "./report-changes.ts";
import {
  changeSettings,
  openRotation,
  rejectUnfinishedRotation,
  rotationIn,
} from "./rotate.ts";
import { startMaster } from "./rotations.ts";
import {
  askForKey,
  providerVariable,
  rejectUselessGrace,
  secondsOf,
} from "./rotate-verb.ts";
import { readRawSettings, type Session } from "./session.ts";
import { removeSettings } from "./settings.ts";
import { dropPendingCreates, readState, RELEASE_TYPE } from "./state.ts";

/** Runs one verb on a stack on Kubernetes and returns the exit code. Throws UsageError, or the failure. */
export async function runKubernetesVerb(
  session: Session,
  [verb = "", ...rest]: readonly string[],
  flags: Flags,
): Promise<number> {
  rejectFlags(flags);
  switch (verb) {
    case "up":
      return upVerb(session, flags);
    case "preview":
      return previewVerb(session, flags);
    case "refresh":
      return refreshVerb(session);
    case "rotate":
      return rotateVerb(session, rest, flags);
    case "destroy":
      return destroyVerb(session, flags);
    case "cancel":
      return cancelVerb(session);
    case "upgrade":
    case "adopt":
    case "doctor":
      throw new UsageError(
        `${verb} is for two hosts; on Kubernetes: ${await insteadOf(verb, session)}.`,
      );
    default:
      throw new UsageError(`unknown verb "${verb}".\n${USAGE}`);
  }
}

/** What does the work of a verb that only two hosts have. */
async function insteadOf(
  verb: "upgrade" | "adopt" | "doctor",
  session: Session,
): Promise<string> {
  const { cluster } = await readKubernetesSettings(session);
  switch (verb) {
    case "upgrade":
      return "the operator of postgres.mode cluster or the provider of an external Postgres upgrades it; the bundled one is for trials (docs/growing.md)";
    case "adopt":
      return `\`${typedHelm(cluster, "uninstall hearth")}\` keeps all data, and \`npm run deploy -- up\` installs the chart over it again`;
    case "doctor":
      return `\`${typedKubectl(cluster, `exec ${SUPERVISOR_POD} -- hearth doctor`)}\` checks what runs, and \`npm run deploy -- preview --refresh\` compares it with the state`;
  }
}

function rejectFlags(flags: Flags): void {
  if (flags.without !== undefined) {
    throw new UsageError(
      "--without is for two hosts; Kubernetes moves the pods of a node that is down.",
    );
  }
  if (flags.purge === true) {
    throw new UsageError(
      "--purge is for two hosts; on Kubernetes, run destroy, then delete the namespace with kubectl, which deletes the volumes.",
    );
  }
  if (flags["forget-old"] === true) {
    throw new UsageError(
      "--forget-old is for two hosts; on Kubernetes, Hearth does not copy Postgres to another version.",
    );
  }
}

/** The configuration of a stack on Kubernetes, secrets in plain text. Throws ConfigRejected with every mistake. */
async function readKubernetesSettings(
  session: Pick<Session, "stack">,
): Promise<KubernetesConfig> {
  const result: ConfigResult<KubernetesConfig> = readKubernetesConfig(
    await readRawSettings(session.stack),
  );
  return accept(result, () => []);
}

/**
 * The configuration. Throws if the stack is installed in another cluster or namespace: the engine would uninstall it there and install it here with empty
 * volumes.
 */
async function rejectMovedRelease(session: Session): Promise<KubernetesConfig> {
  // Also reports mistakes before the engine's long output.
  const config = await readKubernetesSettings(session);
  const { cluster } = config;
  const { resources } = await readState(session.stack);
  const known = (type: string, input: string) =>
    resources.find((resource) => resource.type === type)?.inputs?.[input];
  const places = [
    ["context", known("pulumi:providers:kubernetes", "context")],
    ["namespace", known(RELEASE_TYPE, "namespace")],
  ] as const;
  for (const [name, before] of places) {
    if (typeof before === "string" && before !== cluster[name]) {
      throw new Error(
        `hearth:cluster.${name} is ${cluster[name]}, but the stack is installed in ${before}, where its volumes are; nothing was changed: npx pulumi config set --path hearth:cluster.${name} ${before}; to move it, create another stack (docs/growing.md).`,
      );
    }
  }
  return config;
}

async function rejectDuringRotation(
  session: Session,
): Promise<KubernetesConfig> {
  const config = await readKubernetesSettings(session);
  rejectUnfinishedRotation(config);
  return config;
}

/** Before each verb that may start another version of the gateway. */
async function checkAndBackUp(
  session: Session,
  flags: Flags,
): Promise<KubernetesConfig> {
  const config = await rejectMovedRelease(session);
  await rejectUnusableClusterSettings(config);
  if (flags["no-backup"] !== true) {
    await backUpClusterFirst(session, config);
  }
  return config;
}

async function upVerb(session: Session, flags: Flags): Promise<number> {
  rejectExpiredCertificate(await rejectDuringRotation(session), kubernetes);
  await checkAndBackUp(session, flags);
  return bringUp(session, flags);
}

async function bringUp(session: Session, flags: Flags): Promise<number> {
  await dropPendingCreates(session);
  const { summary } = await session.stack.up({
    ...session.options,
    ...(flags.refresh === true ? { refresh: true } : {}),
  });
  return reportChanges(session, summary.resourceChanges);
}

async function previewVerb(session: Session, flags: Flags): Promise<number> {
  const config = await rejectMovedRelease(session);
  rejectExpiredCertificate(config, kubernetes);
  await rejectUnusableClusterSettings(config);
  const { changeSummary } = await session.stack.preview({
    ...session.options,
    ...(flags.refresh === true ? { refresh: true } : {}),
  });
  await announceClusterMigrations(session, config);
  return reportChanges(session, changeSummary);
}

async function refreshVerb(session: Session): Promise<number> {
  const { summary } = await session.stack.refresh({
    ...session.options,
    clearPendingCreates: true,
  });
  return reportChanges(session, summary.resourceChanges);
}

/** The master key and the providers' keys: gateways accept them as soon as they are replaced, one after the other. */
async function rotateVerb(
  session: Session,
  [kind = "", name]: readonly string[],
  flags: Flags,
): Promise<number> {
  if (kind !== "master" && kind !== "provider") {
    throw new UsageError(
      `rotate ${kind} is for two hosts; on Kubernetes, rotate master and rotate provider NAME are available, and docs/growing.md has the steps for the passwords of stores.`,
    );
  }
  rejectUselessGrace(kind, flags);
  if (kind === "master" && flags.end !== true) {
    return rotateMaster(session, flags);
  }
  await rejectDuringRotation(session);
  // Before any setting is changed.
  const config = await checkAndBackUp(session, flags);
  const done =
    kind === "provider"
      ? await changeProviderKey(session, config, name)
      : await endGrace(session);
  const code = await bringUp(session, flags);
  session.say(done);
  return code;
}

/** Stored until it is complete, so that the same command continues it after an interruption. */
async function rotateMaster(session: Session, flags: Flags): Promise<number> {
  const options = { graceSeconds: secondsOf(flags.grace ?? "24h") };
  const config = await checkAndBackUp(session, flags);
  const { settings } = await openRotation(
    session,
    rotationIn(config),
    options,
    () => startMaster(config, options),
  );
  await changeSettings(session, config, settings);
  const code = await bringUp(session, flags);
  await removeSettings(session, ["rotation"]);
  session.say(
    `The master key is replaced. The old one is valid until ${settings["masterKeyPreviousUntil"]}; \`npm run deploy -- rotate master --end\` expires it now.`,
  );
  return code;
}

async function changeProviderKey(
  session: Session,
  config: KubernetesConfig,
  name: string | undefined,
): Promise<string> {
  const provider = await askForKey(
    name === undefined ? undefined : providerVariable(name),
  );
  await changeSettings(session, config, {
    [`providerKeys.${provider.name}`]: provider.key,
  });
  return "All gateways use the new key: the old one can be deleted at the provider.";
}

async function endGrace(session: Session): Promise<string> {
  await removeSettings(session, [
    "masterKeyPrevious",
    "masterKeyPreviousUntil",
  ]);
  return "The old master key is no longer valid.";
}

async function destroyVerb(session: Session, flags: Flags): Promise<number> {
  const { stack, say, options } = session;
  const { color, onOutput } = options;
  await stack.previewDestroy({
    ...(color === undefined ? {} : { color }),
    ...(onOutput === undefined ? {} : { onOutput }),
  });
  if (flags.yes !== true) {
    if (!process.stdin.isTTY) {
      throw new UsageError(
        "destroy asks for confirmation: add --yes to run it without a terminal.",
      );
    }
    if (given(await confirm({ message: "Remove these resources?" })) !== true) {
      throw new Error("canceled; nothing was changed.");
    }
  }
  await dropPendingCreates(session);
  await stack.destroy(options);
  say(
    `The volumes and the generated secrets are kept: \`npm run deploy -- up\` uses them again.`,
  );
  return 0;
}
