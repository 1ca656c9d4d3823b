import { confirm, isCancel, password, text } from "@clack/prompts";
import type { OpMap } from "@pulumi/pulumi/automation/stack.js";
import type { HostName } from "../config/config.ts";
import { adopt, refuseWhileRotating } from "./adopt.ts";
import { backUpFirst } from "./backup-first.ts";
import { bringUp, lookFirst } from "./bring-up.ts";
import {
  destroy,
  keptVolumes,
  leftVolumes,
  previewDestroy,
  purge,
  removalOf,
} from "./destroy.ts";
import { examine } from "./doctor.ts";
import { namesByHost } from "./host-view.ts";
import { end, leftOverPlugins } from "./processes.ts";
import { followPlacement, refuseMoved } from "./placement.ts";
import { needSameMajor } from "./postgres-major.ts";
import { forgetOldPostgres, upgradePostgres } from "./postgres-upgrade.ts";
import { renewProviders } from "./providers.ts";
import { begunAs, endGrace, refuseHalfRotation, rotate } from "./rotate.ts";
import { ROTATION_KINDS, type RotationKind } from "./rotations.ts";
import { readSettings, type Session } from "./session.ts";
import { dropPendingCreates } from "./state.ts";
import { lookBeforeDestroy, refuseLostState } from "./unknown-stack.ts";
import { onHost } from "./without-host.ts";

export const USAGE = `usage: npm run deploy -- VERB [--stack home]

  up        make the hosts what the program and the configuration say (--refresh looks at the hosts first); before the
            database is migrated it is backed up, with the notes (--no-backup goes on without)
  preview   say what up would do
  refresh   look at the hosts and remember what is there
            all three: --without b leaves out a host that is away
  rotate    replace a secret without a failed call: postgres, redis, master, notes, provider NAME
            master: the old key works for --grace 24h more, --end ends that now; provider: the new key is asked for
  upgrade   postgres: bring the data to the major version of Postgres that this version of Hearth has, then as up; --forget-old
            deletes the earlier cluster, which is kept
  destroy   remove everything but the data; asks first, or --yes; --purge removes the data too and asks for the stack's name
  adopt     take over what runs on the hosts when the state was lost
  doctor    say what state, hosts and configuration disagree about, and what mends it
  cancel    after a run that was killed: lift its lock, end the plugins it left, and clear what it had half created

  --cwd     the directory of Pulumi.yaml and Pulumi.<stack>.yaml, when it is not this one

example: npm run deploy -- rotate master --grace 2h
`;

export interface Flags {
  readonly refresh?: boolean;
  readonly without?: string;
  readonly "no-backup"?: boolean;
  readonly grace?: string;
  readonly end?: boolean;
  readonly "forget-old"?: boolean;
  readonly purge?: boolean;
  readonly yes?: boolean;
}

/** A mistake in the command line, in one sentence. */
export class NotUnderstood extends Error {}

const longestWords: Readonly<Record<string, number>> = {
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
  if (words.length > (longestWords[verb] ?? 1)) {
    throw new NotUnderstood(
      `${verb} does not know what to do with "${rest.at(-1)}".\n${USAGE}`,
    );
  }
  switch (verb) {
    case "up":
      await refuseHalfRotation(session);
      await refuseLostState(session);
      await backedUp(session, flags);
      return summed(
        session,
        await bringUp(session, {
          ...(flags.refresh === true ? lookFirst : {}),
          ...(await withoutHost(session, flags)),
        }),
      );
    case "preview": {
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
    case "refresh": {
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
    case "rotate":
      return rotateVerb(session, rest, flags);
    case "upgrade":
      return upgradeVerb(session, rest, flags);
    case "destroy":
      return destroyVerb(session, flags);
    case "adopt":
      await refuseWhileRotating(session);
      await backedUp(session, flags);
      await adopt(session);
      return 0;
    case "doctor":
      return doctorVerb(session);
    case "cancel":
      return cancelVerb(session);
    default:
      throw new NotUnderstood(`there is no verb "${verb}".\n${USAGE}`);
  }
}

/** Each of the verbs that may bring another version of the gateway. */
async function backedUp(session: Session, flags: Flags): Promise<void> {
  await needSameMajor(session, hostFlag(flags.without));
  if (flags["no-backup"] === true) {
    return;
  }
  await backUpFirst(session, hostFlag(flags.without));
}

async function withoutHost(
  session: Session,
  { without }: Flags,
): Promise<{ readonly exclude?: string[] }> {
  const host = hostFlag(without);
  return host === undefined ? {} : { exclude: await onHost(session, host) };
}

/** The host that --without names. Throws NotUnderstood. */
export function hostFlag(without: string | undefined): HostName | undefined {
  if (without === undefined || without === "a" || without === "b") {
    return without;
  }
  throw new NotUnderstood("--without takes a host: a or b.");
}

async function rotateVerb(
  session: Session,
  [kind = "", name]: readonly string[],
  flags: Flags,
): Promise<number> {
  if (!isKind(kind) || (name !== undefined && kind !== "provider")) {
    throw new NotUnderstood(
      `rotate takes one of ${ROTATION_KINDS.join(", ")}, and provider a name: npm run deploy -- rotate provider openai`,
    );
  }
  if (kind === "master" && flags.end === true) {
    await refuseHalfRotation(session);
    await endGrace(session);
    return 0;
  }
  const graceSeconds = secondsOf(flags.grace ?? "24h");
  const provider = name === undefined ? undefined : providerVariable(name);
  const begun = begunAs(await readSettings(session), kind, provider);
  await refuseLostState(session);
  await backedUp(session, flags);
  await rotate(session, kind, {
    graceSeconds,
    ...(kind === "provider" && begun === null
      ? { provider: await askForKey(provider) }
      : {}),
  });
  return 0;
}

async function upgradeVerb(
  session: Session,
  [what]: readonly string[],
  flags: Flags,
): Promise<number> {
  if (what !== "postgres") {
    throw new NotUnderstood(
      "upgrade takes postgres: npm run deploy -- upgrade postgres. All else is upgraded by npm run deploy -- up.",
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

function isKind(word: string): word is RotationKind {
  return ROTATION_KINDS.some((kind) => kind === word);
}

function secondsOf(text: string): number {
  const match = /^(\d+)([smhd])$/.exec(text);
  if (match === null) {
    throw new NotUnderstood("--grace takes a time such as 30m, 24h or 7d.");
  }
  const units = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
  return Number(match[1]) * units[match[2] as keyof typeof units];
}

/** `openai` stands for OPENAI_API_KEY. */
function providerVariable(name: string): string {
  return /^[A-Z][A-Z0-9_]*$/.test(name)
    ? name
    : `${name.toUpperCase().replaceAll("-", "_")}_API_KEY`;
}

/** The key itself is never an argument: those are seen by everybody on the machine. */
async function askForKey(
  name: string | undefined,
): Promise<{ readonly name: string; readonly key: string }> {
  if (name === undefined) {
    throw new NotUnderstood(
      "rotate provider takes a name: npm run deploy -- rotate provider openai",
    );
  }
  const key = process.stdin.isTTY
    ? given(await password({ message: `The new ${name}` }))
    : await readInput();
  if (key === "") {
    throw new NotUnderstood(
      `no key was given: type it when asked, or pipe it in (npm run deploy -- rotate provider ${name} < FILE).`,
    );
  }
  return { name, key };
}

async function readInput(): Promise<string> {
  let said = "";
  for await (const piece of process.stdin) {
    said += String(piece);
  }
  return said.trim();
}

async function destroyVerb(session: Session, flags: Flags): Promise<number> {
  const { stack, say } = session;
  if (flags.purge === true && !process.stdin.isTTY) {
    throw new NotUnderstood(
      "destroy --purge asks for the stack's name: run it where you can answer.",
    );
  }
  await refuseHalfRotation(session);
  await refuseMoved(session);
  const unknown = await lookBeforeDestroy(session);
  await previewDestroy(session);
  if (unknown.length > 0) {
    say(`Not in the state, and removed all the same: ${namesByHost(unknown)}`);
  }
  if (flags.purge === true) {
    const typed = given(
      await text({
        message: `All data will be gone: rows, keys, notes, backups on the hosts. Type the stack's name (${stack.name}) to go on`,
      }),
    );
    if (typed !== stack.name) {
      throw new Error(
        `"${typed}" is not the stack's name; nothing was touched.`,
      );
    }
  } else if (flags.yes !== true) {
    if (!process.stdin.isTTY) {
      throw new NotUnderstood(
        "destroy asks first: add --yes where nobody can answer.",
      );
    }
    if (given(await confirm({ message: "Remove these?" })) !== true) {
      throw new Error("stopped; nothing was touched.");
    }
  }
  await destroy(session, unknown);
  const volumes = await keptVolumes(session);
  if (flags.purge !== true) {
    say(
      `The data is kept (${namesByHost(volumes, "nothing")}): \`npm run deploy -- up\` finds it again.`,
    );
    return 0;
  }
  await purge(session, volumes);
  const left = await leftVolumes(session);
  say(
    `${
      left.length === 0
        ? "Nothing of the stack is left on the hosts."
        : `Left, as the state does not know them: ${namesByHost(left)}; ${removalOf(session, left)}.`
    } Directories that notesData or backupDirectory name are untouched; \`npx pulumi stack rm ${stack.name}\` forgets the stack itself.`,
  );
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
    `Stack unlocked${left.length === 0 ? "" : `, and ${left.map(({ program, pid }) => `${program} (process ${pid})`).join(", ")} ended`}: \`npm run deploy -- up\` goes on.`,
  );
  return 0;
}

function summed(session: Session, changes: OpMap | undefined): number {
  const parts = Object.entries(changes ?? {}).map(
    ([operation, count]) => `${count} ${operation}`,
  );
  session.say(parts.length === 0 ? "nothing to do" : parts.join(", "));
  return 0;
}

function given<T>(answer: T): Exclude<T, symbol> {
  if (isCancel(answer)) {
    throw new Error("stopped; nothing was changed.");
  }
  return answer as Exclude<T, symbol>;
}
