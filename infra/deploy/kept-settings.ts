import type { HearthConfig, HostName } from "../config/config-schema.ts";
import { dockerAt, typedDocker, type StackEngines } from "../engine.ts";
import { containerName, volumeName, type ContainerService } from "../names.ts";
import type { Finding } from "./findings.ts";
import { ANSWERS_WITHIN_MS } from "./host-view.ts";
import {
  containersNamed,
  filesOf,
  nameOf,
  VOLUME_TYPE,
  type State,
} from "./state.ts";

const SALT_KEY_FILE = "/run/hearth/HEARTH_SALT_KEY";
const INI_FILE = "/opt/couchdb/etc/local.d/10-hearth.ini";

/**
 * Throws one sentence if a setting that must never change differs from the deployed one: the engine would show and apply it as any
 * other replacement.
 */
export function rejectChangedIdentity(
  engines: StackEngines,
  config: HearthConfig,
  state: State,
): void {
  const [change] = findChangedIdentity(engines, config, state);
  if (change !== undefined) {
    throw new Error(`${change.what}; nothing was changed: ${change.fix}`);
  }
}

/** The settings that must never change and differ from the deployed ones. */
export function findChangedIdentity(
  engines: StackEngines,
  config: HearthConfig,
  state: State,
): readonly Finding[] {
  return [
    ...changedPrefix(config, state),
    ...findOtherKeys(engines, config, keysIn(state)),
  ];
}

/** What must never change, as deployed. */
interface DeployedKeys {
  /** The ini of the notes server. */
  readonly ini: string | undefined;
  /** The salt key of each host's gateway. */
  readonly saltKeys: Readonly<Record<HostName, string | undefined>>;
}

/** Of the keys, those that differ from the deployed ones. */
export function findOtherKeys(
  engines: StackEngines,
  config: Pick<HearthConfig, "notesUuid" | "saltKey">,
  { ini, saltKeys }: DeployedKeys,
): readonly Finding[] {
  return [
    ...changedNotesUuid(config, ini),
    ...changedSaltKey(config, saltKeys, engines),
  ];
}

function keysIn(state: State): DeployedKeys {
  const fileIn = (container: string, path: string) =>
    containersNamed(state, [container])
      .flatMap(filesOf)
      .find(({ file }) => file === path)?.content;
  return {
    ini: fileIn("notes", INI_FILE),
    saltKeys: {
      a: fileIn("gateway-a", SALT_KEY_FILE),
      b: fileIn("gateway-b", SALT_KEY_FILE),
    },
  };
}

/** Read from the running containers; those that do not run, or whose host does not respond, are left out. */
export async function keysOn(
  engines: StackEngines,
  { placement }: Pick<HearthConfig, "placement">,
): Promise<DeployedKeys> {
  const read = (host: HostName, service: ContainerService, path: string) =>
    dockerAt(
      engines[host],
      ["exec", containerName(engines[host], service), "cat", path],
      "",
      ANSWERS_WITHIN_MS,
    ).catch(() => undefined);
  const [ini, a, b] = await Promise.all([
    read(placement.notes, "couchdb", INI_FILE),
    read("a", "gateway", SALT_KEY_FILE),
    read("b", "gateway", SALT_KEY_FILE),
  ]);
  return { ini, saltKeys: { a, b } };
}

function changedPrefix(
  { prefix }: Pick<HearthConfig, "prefix">,
  { resources }: State,
): readonly Finding[] {
  const deployed = resources.find(
    ({ type, urn }) => type === VOLUME_TYPE && nameOf(urn) === "postgres-data",
  )?.inputs?.["name"];
  return typeof deployed !== "string" ||
    deployed === volumeName({ prefix }, "postgres")
    ? []
    : [
        {
          what: `hearth:prefix is ${prefix}, but the data is in volumes such as ${deployed}`,
          fix: `set it back: npx pulumi config set hearth:prefix ${deployed.replace(/-postgres$/, "")}`,
        },
      ];
}

function changedNotesUuid(
  { notesUuid }: Pick<HearthConfig, "notesUuid">,
  ini = "",
): readonly Finding[] {
  const deployed = /^uuid = (\w+)$/m.exec(ini)?.[1];
  return deployed === undefined || deployed === notesUuid
    ? []
    : [
        {
          what: "hearth:notesUuid is another one than deployed, with which every device syncs all notes again",
          fix: `set it back: npx pulumi config set hearth:notesUuid ${deployed}`,
        },
      ];
}

function changedSaltKey(
  { saltKey }: Pick<HearthConfig, "saltKey">,
  deployed: DeployedKeys["saltKeys"],
  engines: StackEngines,
): readonly Finding[] {
  const host = (["a", "b"] as const).find(
    (each) => ![undefined, saltKey].includes(deployed[each]),
  );
  if (host === undefined) {
    return [];
  }
  const engine = engines[host];
  const print = `exec ${containerName(engine, "gateway")} cat ${SALT_KEY_FILE}`;
  return [
    {
      what: "hearth:saltKey is another one than deployed, with which the gateways cannot decrypt the credentials that they store in Postgres",
      fix: `set it back: ${typedDocker(engine, print)} | npx pulumi config set --secret hearth:saltKey`,
    },
  ];
}
