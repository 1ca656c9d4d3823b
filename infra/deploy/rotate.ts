import { secretFields } from "../config/config-schema.ts";
import type { HearthConfig } from "../config/config.ts";
import {
  kinds,
  type Rotation,
  type RotationKind,
  type RotationWish,
} from "./rotations.ts";
import { bringUp } from "./bring-up.ts";
import { readSettings, type Session } from "./session.ts";
import { removeSettings, setSetting } from "./settings.ts";

/**
 * Replaces one secret on the servers and in the stack's configuration, without a failed call: B's gateway is replaced before
 * A's. What was decided is kept, encrypted, under `hearth:rotation` until all is done, so that the same command goes on after
 * an interruption. Throws one sentence.
 */
export async function rotate(
  session: Session,
  kind: RotationKind,
  wish: RotationWish,
): Promise<void> {
  const { say } = session;
  const config = await readSettings(session);
  const { need, before, after, passing, next } = kinds[kind];
  if (config.rotation === undefined) {
    await need?.(session, config);
  } else {
    say(`Continuing the unfinished rotation of ${kind}.`);
  }
  const rotation =
    begunAs(config, kind, wish.provider?.name) ??
    (await begin(session, config, kind, wish));
  await before?.(session, config, rotation);
  for (const [key, value] of Object.entries(rotation.settings)) {
    await changeSetting(session, config, key, value);
  }
  await bringUp(session);
  await after?.(session, config, rotation);
  await removeSettings(session, [...passing, "rotation"]);
  say(next(rotation));
}

/** The old master key ends now instead of at its time. */
export async function endGrace(session: Session): Promise<void> {
  const { masterKeyPrevious } = await readSettings(session);
  if (masterKeyPrevious === undefined) {
    session.say("There is no old master key to expire.");
    return;
  }
  await removeSettings(session, [
    "masterKeyPrevious",
    "masterKeyPreviousUntil",
  ]);
  await bringUp(session);
  session.say("The old master key is no longer valid.");
}

/** The rotation that was begun, if any. */
export function rotationIn({ rotation }: HearthConfig): Rotation | null {
  return rotation === undefined ? null : (JSON.parse(rotation) as Rotation);
}

/** Throws a sentence in the midst of a rotation: servers, configuration and state have different secrets. */
export async function refuseHalfRotation(
  session: Pick<Session, "stack">,
): Promise<void> {
  const begun = rotationIn(await readSettings(session));
  if (begun !== null) {
    throw new Error(
      `a rotation of ${begun.of} is unfinished: run \`npm run deploy -- ${rotateCommand(begun)}\` to complete it and bring the hosts up.`,
    );
  }
}

/** The rotation of this kind, and of this provider, that was begun, if any. Throws a sentence when another one was. */
export function begunAs(
  config: HearthConfig,
  kind: RotationKind,
  provider: string | undefined,
): Rotation | null {
  const begun = rotationIn(config);
  if (begun === null) {
    return null;
  }
  const same =
    begun.of === kind &&
    (provider === undefined || `providerKeys.${provider}` in begun.settings);
  if (!same) {
    throw new Error(
      `a rotation of ${nameOf(begun)} is unfinished: run \`npm run deploy -- ${rotateCommand(begun)}\` to complete it, then rotate ${provider ?? kind}.`,
    );
  }
  return begun;
}

/** The words that go on with a rotation. */
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

async function begin(
  session: Session,
  config: HearthConfig,
  kind: RotationKind,
  wish: RotationWish,
): Promise<Rotation> {
  const rotation: Rotation = { of: kind, ...kinds[kind].begin(config, wish) };
  await setSetting(session, "rotation", {
    value: JSON.stringify(rotation),
    secret: true,
  });
  return rotation;
}

async function changeSetting(
  session: Session,
  config: HearthConfig,
  key: string,
  value: string,
): Promise<void> {
  const [top = "", name] = key.split(".");
  const secret = secretFields.includes(top);
  if (name === undefined) {
    return setSetting(session, key, { value, secret });
  }
  const one = { value, secret, path: true };
  // An object that was set as one JSON text has no paths.
  return setSetting(session, key, one).catch(() =>
    setSetting(session, top, {
      value: JSON.stringify({ ...config.providerKeys, [name]: value }),
      secret,
    }),
  );
}
