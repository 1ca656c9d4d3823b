import { rejectExpiredCertificate } from "../config/program-config.ts";
import { twoHosts } from "../config/stack-settings.ts";
import { adopt, rejectDuringRotation } from "./adopt.ts";
import { announceMigrations, checkAndBackUp } from "./backup-first.ts";
import { bringUp, refreshFirst } from "./bring-up.ts";
import { cancelVerb } from "./cancel-verb.ts";
import { destroyVerb } from "./destroy-verb.ts";
import { examine } from "./stack-doctor.ts";
import { hostFlag, UsageError, USAGE, type Flags } from "./flags.ts";
import { orLeaveOut, requireHosts } from "./host-view.ts";
import { followPlacement, rejectMovedServices } from "./placement.ts";
import { rejectUnusableSettings } from "./operators-files.ts";
import { forgetOldPostgres, upgradePostgres } from "./postgres-upgrade.ts";
import { renewProviders } from "./providers.ts";
import { reportChanges } from "./report-changes.ts";
import { rejectUnfinishedRotation } from "./rotate.ts";
import { rotateVerb } from "./rotate-verb.ts";
import { readSettings, type Session } from "./session.ts";
import { checkState } from "./unknown-stack.ts";
import { onHost } from "./without-host.ts";

const MAX_WORDS: Readonly<Record<string, number>> = {
  rotate: 3,
  upgrade: 2,
};

/** Runs one verb and returns the exit code. Throws UsageError, or the failure. */
export async function runVerb(
  session: Session,
  words: readonly string[],
  flags: Flags,
): Promise<number> {
  const [verb = "", ...rest] = words;
  if (words.length > (MAX_WORDS[verb] ?? 1)) {
    throw new UsageError(
      `${verb}: unexpected argument "${rest.at(-1)}".\n${USAGE}`,
    );
  }
  if (session.runtime === "kubernetes") {
    const { runKubernetesVerb } = await import("./kubernetes-verbs.ts");
    return runKubernetesVerb(session, words, flags);
  }
  if (flags.without !== undefined && !/^(up|preview|refresh)$/.test(verb)) {
    throw new UsageError(
      `--without is for up, preview and refresh, not for ${verb}.`,
    );
  }
  switch (verb) {
    case "up":
      return upVerb(session, flags);
    case "preview":
      return previewVerb(session, flags);
    case "refresh":
      return refreshVerb(session, flags);
    case "rotate":
      return rotateVerb(session, rest, flags);
    case "upgrade":
      return upgradeVerb(session, rest, flags);
    case "destroy":
      return destroyVerb(session, flags);
    case "adopt":
      return adoptVerb(session, flags);
    case "doctor":
      return doctorVerb(session);
    case "cancel":
      return cancelVerb(session);
    default:
      throw new UsageError(`unknown verb "${verb}".\n${USAGE}`);
  }
}

async function upVerb(session: Session, flags: Flags): Promise<number> {
  const config = await readSettings(session);
  rejectUnfinishedRotation(config);
  rejectExpiredCertificate(config, twoHosts);
  await checkState(session, {
    refresh: flags.refresh === true,
    without: hostFlag(flags.without),
  });
  await checkAndBackUp(session, flags, { maySkip: true });
  return reportChanges(
    session,
    await bringUp(session, {
      ...(flags.refresh === true ? refreshFirst : {}),
      ...(await withoutHost(session, flags)),
    }),
  );
}

async function previewVerb(session: Session, flags: Flags): Promise<number> {
  // Reports mistakes before the engine's long output.
  const config = await readSettings(session);
  const without = hostFlag(flags.without);
  rejectExpiredCertificate(config, twoHosts);
  await requireHosts(session.engines, { without, otherwise: orLeaveOut });
  await rejectUnusableSettings(config);
  await checkState(session, { refresh: flags.refresh === true, without });
  // This may write the state: the engine can neither preview the move of a protected volume nor exclude one whose host changed.
  // Removing it from the state changes nothing on the hosts, and `up` imports a volume by name.
  await followPlacement(session);
  const { changeSummary } = await session.stack.preview({
    ...session.options,
    ...(flags.refresh === true ? refreshFirst : {}),
    ...(await withoutHost(session, flags)),
  });
  await announceMigrations(session, without);
  return reportChanges(session, changeSummary);
}

async function refreshVerb(session: Session, flags: Flags): Promise<number> {
  const without = hostFlag(flags.without);
  rejectUnfinishedRotation(await readSettings(session));
  await requireHosts(session.engines, { without, otherwise: orLeaveOut });
  await rejectMovedServices(session);
  await renewProviders(session, without);
  const { summary } = await session.stack.refresh({
    ...session.options,
    clearPendingCreates: true,
    ...(await withoutHost(session, flags)),
  });
  return reportChanges(session, summary.resourceChanges);
}

async function adoptVerb(session: Session, flags: Flags): Promise<number> {
  await rejectDuringRotation(session);
  await checkAndBackUp(session, flags);
  await adopt(session);
  return 0;
}

async function withoutHost(
  session: Session,
  { without }: Flags,
): Promise<{ readonly exclude?: string[] }> {
  const host = hostFlag(without);
  return host === undefined ? {} : { exclude: await onHost(session, host) };
}

async function upgradeVerb(
  session: Session,
  [what]: readonly string[],
  flags: Flags,
): Promise<number> {
  if (what !== "postgres") {
    throw new UsageError(
      "upgrade requires postgres: npm run deploy -- upgrade postgres. Everything else is upgraded by npm run deploy -- up.",
    );
  }
  const config = await readSettings(session);
  rejectUnfinishedRotation(config);
  await checkState(session);
  if (flags["forget-old"] === true) {
    await forgetOldPostgres(session);
  } else {
    await requireHosts(session.engines);
    await rejectUnusableSettings(config);
    await upgradePostgres(session, { backup: flags["no-backup"] !== true });
  }
  return 0;
}

async function doctorVerb(session: Session): Promise<number> {
  const findings = await examine(session);
  if (findings.length === 0) {
    session.say("State, hosts and configuration agree.");
    return 0;
  }
  for (const { what, fix } of findings) {
    session.say(`${what}: ${fix}`);
  }
  return 1;
}
