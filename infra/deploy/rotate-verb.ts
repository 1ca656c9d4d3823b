import { password } from "@clack/prompts";
import { text } from "node:stream/consumers";
import { parseDuration } from "../../core/duration.ts";
import { faultOfGrace, INVALID_GRACE } from "../../core/grace-options.ts";
import { ROTATION_KINDS, type RotationKind } from "../config/rotation.ts";
import { given } from "./answer.ts";
import { checkAndBackUp } from "./backup-first.ts";
import { refreshFirst } from "./bring-up.ts";
import { UsageError, type Flags } from "./flags.ts";
import {
  findStartedRotation,
  endGrace,
  rejectUnfinishedRotation,
  rotate,
} from "./rotate.ts";
import { readSettings, type Session } from "./session.ts";
import { checkState } from "./unknown-stack.ts";

export async function rotateVerb(
  session: Session,
  [kind = "", name]: readonly string[],
  flags: Flags,
): Promise<number> {
  if (!isKind(kind) || (name !== undefined && kind !== "provider")) {
    throw new UsageError(
      `rotate requires one of ${ROTATION_KINDS.join(", ")}; provider also requires a name: npm run deploy -- rotate provider openai`,
    );
  }
  rejectUselessGrace(kind, flags);
  const refresh = flags.refresh === true;
  const upOptions = refresh ? refreshFirst : {};
  if (kind === "master" && flags.end === true) {
    rejectUnfinishedRotation(await readSettings(session));
    await checkState(session, { refresh });
    await checkAndBackUp(session, flags);
    await endGrace(session, upOptions);
    return 0;
  }
  const graceSeconds = secondsOf(flags.grace ?? "24h");
  const provider = name === undefined ? undefined : providerVariable(name);
  const started = findStartedRotation(
    await readSettings(session),
    kind,
    provider,
  );
  await checkState(session, { rotated: kind, refresh });
  await checkAndBackUp(session, flags);
  const options = {
    graceSeconds,
    ...(kind === "provider" && started === null
      ? { provider: await askForKey(provider) }
      : {}),
  };
  await rotate(session, kind, options, upOptions);
  return 0;
}

function isKind(word: string): word is RotationKind {
  return ROTATION_KINDS.some((kind) => kind === word);
}

/** Throws UsageError for `--grace` and `--end` that this rotation would ignore. */
export function rejectUselessGrace(kind: string, flags: Flags): void {
  const fault = faultOfGrace(kind, flags);
  if (fault !== null) {
    throw new UsageError(fault);
  }
}

/** "24h" in seconds. Throws UsageError. */
export function secondsOf(text: string): number {
  const ms = /^\d+[smhd]$/.test(text) ? parseDuration(text) : undefined;
  if (ms === undefined) {
    throw new UsageError(INVALID_GRACE);
  }
  return ms / 1_000;
}

/** `openai` is short for OPENAI_API_KEY. */
export function providerVariable(name: string): string {
  return /^[A-Z][A-Z0-9_]*$/.test(name)
    ? name
    : `${name.toUpperCase().replaceAll("-", "_")}_API_KEY`;
}

/** The key is never an argument: arguments are visible to every user of the machine. */
export async function askForKey(
  name: string | undefined,
): Promise<{ readonly name: string; readonly key: string }> {
  if (name === undefined) {
    throw new UsageError(
      "rotate provider requires a name: npm run deploy -- rotate provider openai",
    );
  }
  const key = process.stdin.isTTY
    ? given(await password({ message: `New ${name}` }))
    : (await text(process.stdin)).trim();
  if (key === "") {
    throw new UsageError(
      `the key is required: type it at the prompt, or pipe it in (npm run deploy -- rotate provider ${name} < FILE).`,
    );
  }
  return { name, key };
}
