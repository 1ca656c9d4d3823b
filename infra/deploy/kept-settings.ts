import type { HearthConfig } from "../config/config-schema.ts";
import { typedDocker } from "../engine.ts";
import { containerName, volumeName } from "../names.ts";
import { readSettings, type Session } from "./session.ts";
import {
  containersNamed,
  filesOf,
  hostOf,
  nameOf,
  VOLUME_TYPE,
  type State,
} from "./state.ts";

/**
 * Throws one sentence if a setting that must never change differs from the deployed one: the engine would show and apply it as any
 * other replacement.
 */
export async function rejectChangedIdentity(
  session: Pick<Session, "stack" | "engines">,
  state: State,
): Promise<void> {
  const config = await readSettings(session);
  const change =
    changedPrefix(config, state) ??
    changedNotesUuid(config, state) ??
    changedSaltKey(config, state, session.engines);
  if (change !== undefined) {
    throw new Error(
      `${change.what}; nothing was changed: set it back: ${change.fix}`,
    );
  }
}

interface Change {
  readonly what: string;
  readonly fix: string;
}

function changedPrefix(
  { prefix }: Pick<HearthConfig, "prefix">,
  { resources }: State,
): Change | undefined {
  const deployed = resources.find(
    ({ type, urn }) => type === VOLUME_TYPE && nameOf(urn) === "postgres-data",
  )?.inputs?.["name"];
  return typeof deployed !== "string" ||
    deployed === volumeName({ prefix }, "postgres")
    ? undefined
    : {
        what: `hearth:prefix is ${prefix}, but the data is in volumes such as ${deployed}`,
        fix: `npx pulumi config set hearth:prefix ${deployed.replace(/-postgres$/, "")}`,
      };
}

function changedNotesUuid(
  { notesUuid }: Pick<HearthConfig, "notesUuid">,
  state: State,
): Change | undefined {
  const ini = containersNamed(state, ["notes"]).flatMap((container) =>
    filesOf(container).map(({ content }) => content),
  )[0];
  const deployed = /^uuid = (\w+)$/m.exec(ini ?? "")?.[1];
  return deployed === undefined || deployed === notesUuid
    ? undefined
    : {
        what: "hearth:notesUuid is another one than deployed, with which every device syncs all notes again",
        fix: `npx pulumi config set hearth:notesUuid ${deployed}`,
      };
}

const SALT_KEY_FILE = "/run/hearth/HEARTH_SALT_KEY";

function changedSaltKey(
  { saltKey }: Pick<HearthConfig, "saltKey">,
  state: State,
  engines: Session["engines"],
): Change | undefined {
  const gateway = containersNamed(state, ["gateway-a", "gateway-b"]).find(
    (container) =>
      filesOf(container).some(
        ({ file, content }) => file === SALT_KEY_FILE && content !== saltKey,
      ),
  );
  const host = gateway === undefined ? null : hostOf(gateway);
  if (host === null) {
    return undefined;
  }
  const engine = engines[host];
  const print = `exec ${containerName(engine, "gateway")} cat ${SALT_KEY_FILE}`;
  return {
    what: "hearth:saltKey is another one than deployed, with which the gateways cannot decrypt the credentials that they store in Postgres",
    fix: `${typedDocker(engine, print)} | npx pulumi config set --secret hearth:saltKey`,
  };
}
