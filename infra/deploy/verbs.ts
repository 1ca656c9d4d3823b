import type { OpMap } from "@pulumi/pulumi/automation/stack.js";
import { adopt, refuseWhileRotating } from "./adopt.ts";
import { checkAndBackUp } from "./backup-first.ts";
import { bringUp, lookFirst } from "./bring-up.ts";
import { destroyVerb } from "./destroy-verb.ts";
import { examine } from "./doctor.ts";
import { hostFlag, NotUnderstood, USAGE, type Flags } from "./flags.ts";
import { end, leftOverPlugins } from "./processes.ts";
import { followPlacement, refuseMoved } from "./placement.ts";
import { forgetOldPostgres, upgradePostgres } from "./postgres-upgrade.ts";
import { renewProviders } from "./providers.ts";
import { refuseHalfRotation } from "./rotate.ts";
import { rotateVerb } from "./rotate-verb.ts";
import { readSettings, type Session } from "./session.ts";
import { dropPendingCreates } from "./state.ts";
import { refuseLostState } from "./unknown-stack.ts";
import { onHost } from "./without-host.ts";

const MAX_WORDS: Readonly<Record<string, number>> = {
  rotate: 3,
  upgrade: 2,
};

/** Runs one verb; the exit code. Throws NotUnderstood, or what failed. */
export async function runVerb(
  session: Session,
  words: readonly string[],
  flags: Flags,
): Promise<number> {
  const [verb = "", ...rest] = words;
  if (words.length > (MAX_WORDS[verb] ?? 1)) {
    throw new NotUnderstood(
      `${verb}: unexpected argument "${rest.at(-1)}".\n${USAGE}`,
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
      throw new NotUnderstood(`unknown verb "${verb}".\n${USAGE}`);
  }
}

async function upVerb(session: Session, flags: Flags): Promise<number> {
  await refuseHalfRotation(session);
  await refuseLostState(session);
  await checkAndBackUp(session, flags);
  return summed(
    session,
    await bringUp(session, {
      ...(flags.refresh === true ? lookFirst : {}),
      ...(await withoutHost(session, flags)),
    }),
  );
}

async function previewVerb(session: Session, flags: Flags): Promise<number> {
  // The engine's report would bury them.
  await readSettings(session);
  await refuseLostState(session);
  // It may write the state: the engine previews no move of a protected volume, nor leaves one out whose host changed. To let
  // go of it changes nothing on the hosts, and `up` takes a volume by its name.
  await followPlacement(session);
  const { changeSummary } = await session.stack.preview({
    ...session.options,
    ...(flags.refresh === true ? lookFirst : {}),
    ...(await withoutHost(session, flags)),
  });
  return summed(session, changeSummary);
}

async function refreshVerb(session: Session, flags: Flags): Promise<number> {
  await refuseHalfRotation(session);
  await refuseMoved(session);
  await renewProviders(session, hostFlag(flags.without));
  const { summary } = await session.stack.refresh({
    ...session.options,
    clearPendingCreates: true,
    ...(await withoutHost(session, flags)),
  });
  return summed(session, summary.resourceChanges);
}

async function adoptVerb(session: Session, flags: Flags): Promise<number> {
  await refuseWhileRotating(session);
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
    throw new NotUnderstood(
      "upgrade requires postgres: npm run deploy -- upgrade postgres. Everything else is upgraded by npm run deploy -- up.",
    );
  }
  await refuseHalfRotation(session);
  await refuseLostState(session);
  if (flags["forget-old"] === true) {
    await forgetOldPostgres(session);
  } else {
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
  for (const { what, mend } of findings) {
    session.say(`${what}: ${mend}`);
  }
  return 1;
}

async function cancelVerb(session: Session): Promise<number> {
  await session.stack.cancel();
  const left = await leftOverPlugins();
  end(left);
  await dropPendingCreates(session);
  session.say(
    `Stack unlocked${left.length === 0 ? "" : `; ended ${left.map(({ program, pid }) => `${program} (process ${pid})`).join(", ")}`}. Run \`npm run deploy -- up\` to continue.`,
  );
  return 0;
}

function summed(session: Session, changes: OpMap | undefined): number {
  const parts = Object.entries(changes ?? {}).map(
    ([operation, count]) => `${count} ${operation}`,
  );
  session.say(parts.length === 0 ? "no changes" : parts.join(", "));
  return 0;
}
