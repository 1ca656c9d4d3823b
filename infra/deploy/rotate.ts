import type { UpOptions } from "@pulumi/pulumi/automation/stack.js";
import { secretFields, type HearthConfig } from "../config/config-schema.ts";
import {
  parseRotation,
  type Rotation,
  type RotationKind,
} from "../config/rotation.ts";
import {
  extendGrace,
  kinds,
  timeAfter,
  type RotationOptions,
} from "./rotations.ts";
import { bringUp } from "./bring-up.ts";
import { readSettings, type Session } from "./session.ts";
import { removeSettings, setSetting } from "./settings.ts";

/**
 * Replaces one secret on the servers and in the stack's configuration, without a failed call: B's gateway is replaced before
 * A's. The new values are stored, encrypted, under `hearth:rotation` until it is complete, so that the same command continues
 * after an interruption. Throws one sentence.
 */
export async function rotate(
  session: Session,
  kind: RotationKind,
  options: RotationOptions,
  upOptions: Partial<UpOptions> = {},
): Promise<void> {
  const config = await readSettings(session);
  const { start, need, before, after, passing, next } = kinds[kind];
  const started = findStartedRotation(config, kind, options.provider?.name);
  if (started === null) {
    await need?.(session, config);
  }
  const rotation = await openRotation(session, started, options, () => ({
    of: kind,
    ...start(config, options),
  }));
  await before?.(session, config, rotation);
  await changeSettings(session, config, rotation.settings);
  await bringUp(session, upOptions);
  await after?.(session, config, rotation);
  await removeSettings(session, [...passing, "rotation"]);
  session.say(next(rotation));
}

/**
 * Expires the old master key now. Its expiry stays in the configuration until no gateway accepts it, so that `doctor` reports an
 * end that failed.
 */
export async function endGrace(
  session: Session,
  upOptions: Partial<UpOptions> = {},
): Promise<void> {
  await setSetting(session, "masterKeyPreviousUntil", {
    value: timeAfter(0),
    secret: false,
  });
  await removeSettings(session, ["masterKeyPrevious"]);
  // Also without such a key: an earlier run may have removed it and failed here, so that gateways still accept it.
  await bringUp(session, upOptions);
  await removeSettings(session, ["masterKeyPreviousUntil"]);
  session.say("The old master key is no longer valid.");
}

/** The unfinished rotation, if any. */
export function rotationIn({
  rotation,
}: Pick<HearthConfig, "rotation">): Rotation | null {
  return rotation === undefined ? null : parseRotation(rotation);
}

/** Throws one sentence during a rotation: servers, configuration and state have different secrets. */
export function rejectUnfinishedRotation(
  config: Pick<HearthConfig, "rotation">,
): void {
  const started = rotationIn(config);
  if (started !== null) {
    throw new Error(
      `a rotation of ${started.of} is unfinished: run \`npm run deploy -- ${rotateCommand(started)}\` to complete it and bring the stack up.`,
    );
  }
}

/** The unfinished rotation of this kind and provider, if any. Throws one sentence if another one is unfinished. */
export function findStartedRotation(
  config: HearthConfig,
  kind: RotationKind,
  provider: string | undefined,
): Rotation | null {
  const started = rotationIn(config);
  if (started === null) {
    return null;
  }
  const same =
    started.of === kind &&
    (provider === undefined || `providerKeys.${provider}` in started.settings);
  if (!same) {
    throw new Error(
      `a rotation of ${nameOf(started)} is unfinished: run \`npm run deploy -- ${rotateCommand(started)}\` to complete it, then rotate ${provider ?? kind}.`,
    );
  }
  return started;
}

/** Arguments of the command that completes a rotation. */
export function rotateCommand(rotation: Rotation): string {
  return rotation.of === "provider"
    ? `rotate provider ${nameOf(rotation)}`
    : `rotate ${rotation.of}`;
}

/** What is rotated: a provider's variable, else the kind. */
function nameOf({ of, settings }: Rotation): string {
  const [path = ""] = Object.keys(settings);
  return of === "provider" ? path.replace("providerKeys.", "") : of;
}

/** The started rotation, or else a new one. It is stored until it is complete. */
export async function openRotation(
  session: Session,
  started: Rotation | null,
  { graceSeconds }: RotationOptions,
  create: () => Rotation,
): Promise<Rotation> {
  if (started !== null) {
    session.say(`Continuing the unfinished rotation of ${started.of}.`);
  }
  const rotation =
    started === null ? create() : extendGrace(started, graceSeconds);
  await setSetting(session, "rotation", {
    value: JSON.stringify(rotation),
    secret: true,
  });
  return rotation;
}

/** Changes settings one after the other; a provider's key by its path. */
export async function changeSettings(
  session: Pick<Session, "stack">,
  config: Pick<HearthConfig, "providerKeys">,
  settings: Rotation["settings"],
): Promise<void> {
  for (const [key, value] of Object.entries(settings)) {
    await changeSetting(session, config, key, value);
  }
}

async function changeSetting(
  session: Pick<Session, "stack">,
  config: Pick<HearthConfig, "providerKeys">,
  key: string,
  value: string,
): Promise<void> {
  const [top = "", name] = key.split(".");
  const secret = secretFields.includes(top);
  if (name === undefined) {
    return setSetting(session, key, { value, secret });
  }
  const one = { value, secret, path: true };
  // An object stored as one JSON text has no paths.
  return setSetting(session, key, one).catch(() =>
    setSetting(session, top, {
      value: JSON.stringify({ ...config.providerKeys, [name]: value }),
      secret,
    }),
  );
}
