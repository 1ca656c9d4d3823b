import { z } from "zod";
import { AnswerTooLarge } from "../checks/http-get.ts";
import { asExpected } from "./couch-answers.ts";
import { sequenceNumber, type Database } from "./database.ts";
import { MILESTONE_ID } from "./livesync.ts";
import { readPullCheckpoints } from "./pull-checkpoints.ts";

const node = z.looseObject({
  device_name: z.string().default(""),
  vault_name: z.string().default(""),
  app_version: z.string().default(""),
  plugin_version: z.string().default(""),
  progress: z.union([z.string(), z.number()]).transform(String).default("0"),
  last_connected: z.number().default(0),
});
const milestone = z.looseObject({
  locked: z.boolean().default(false),
  cleaned: z.boolean().default(false),
  accepted_nodes: z.array(z.string()).default([]),
  node_info: z.record(z.string(), node).default({}),
  tweak_values: z
    .record(z.string(), z.record(z.string(), z.unknown()))
    .default({}),
});

export interface RosterDevice {
  readonly id: string;
  readonly name: string;
  readonly pluginVersion: string;
  readonly appVersion: string;
  /** Milliseconds since 1970. */
  readonly lastSeen: number;
  /** Changes since it last connected, of which it may have received some; 0 once all devices have received all notes. */
  readonly behind: number;
  /** Its plugin is older than the newest in the vault. */
  readonly outdated: boolean;
  /** Settings that differ from the vault's preferred ones, each with both values. */
  readonly differs: Readonly<
    Record<string, { readonly here: unknown; readonly preferred: unknown }>
  >;
  /** It has access to a locked remote. */
  readonly accepted: boolean;
}

export interface Roster {
  readonly vault: string;
  /** A device has locked the remote: devices that are not accepted must fetch everything again. */
  readonly locked: boolean;
  readonly devices: readonly RosterDevice[];
  /** Findings that need action, one sentence each. */
  readonly remarks: readonly string[];
}

/** Members may write local documents of any size and number. */
const MAX_LOCAL_BYTES = 4_000_000;
/** Settings that describe the device or a time, not how data is stored. */
const DEVICE_SETTINGS = new Set(["tweakModified"]);

/** The milestone document, where devices describe themselves; empty until one has synced. */
export async function readMilestone(
  database: Database,
): Promise<Readonly<z.output<typeof milestone>>> {
  return asExpected(milestone, (await database.document(MILESTONE_ID)) ?? {});
}

/** The devices of a vault according to its milestone document. */
export async function readRoster(database: Database): Promise<Roster> {
  const document = await readMilestone(database);
  const info = await database.info();
  const at = sequenceNumber(info?.update_seq ?? "0");
  const nodes = Object.entries(document.node_info);
  const newest = nodes
    .map(([, { plugin_version }]) => plugin_version)
    .toSorted(byVersion)
    .at(-1);
  const preferred = document.tweak_values["PREFERRED"];
  const devices = nodes
    .map(([id, each]) => ({
      id,
      name: each.device_name || each.vault_name || id,
      pluginVersion: each.plugin_version,
      appVersion: each.app_version,
      lastSeen: each.last_connected,
      behind: Math.max(0, at - sequenceNumber(each.progress)),
      outdated: byVersion(each.plugin_version, newest ?? "") < 0,
      differs: differences(document.tweak_values[id], preferred),
      accepted: document.accepted_nodes.includes(id),
    }))
    .toSorted((a, b) => b.lastSeen - a.lastSeen);
  const areCurrent =
    devices.some(({ behind }) => behind > 0) &&
    (await haveReadAll(database, devices.length));
  return {
    vault: database.name,
    locked: document.locked,
    devices: areCurrent
      ? devices.map((device) => ({ ...device, behind: 0 }))
      : devices,
    remarks: remarksOn(document.locked, devices, newest ?? ""),
  };
}

/**
 * Whether as many devices have read up to the newest note. A device that syncs live records that in its replication checkpoint,
 * and in the milestone document only when it connects. Chunks are newer than the notes that are pushed with them, and most devices
 * do not pull them.
 */
async function haveReadAll(
  database: Database,
  devices: number,
): Promise<boolean> {
  const { results } = await database.changes({
    since: "0",
    limit: 1,
    descending: true,
    selector: { type: { $ne: "leaf" } },
  });
  const newest = sequenceNumber(String(results[0]?.seq ?? "0"));
  const checkpoints = await readPullCheckpoints(database, {
    maxBytes: MAX_LOCAL_BYTES,
  }).catch((error: unknown) => {
    if (error instanceof AnswerTooLarge) {
      return [];
    }
    throw error;
  });
  return (
    checkpoints.filter(({ readUpTo }) => readUpTo >= newest).length >= devices
  );
}

function remarksOn(
  locked: boolean,
  devices: readonly RosterDevice[],
  newest: string,
): readonly string[] {
  const waiting = devices.filter(({ accepted }) => !accepted);
  return [
    ...(locked ? [lockRemark(waiting)] : []),
    ...devices
      .filter(({ outdated }) => outdated)
      .map(
        ({ name, pluginVersion }) =>
          `${name} has Self-hosted LiveSync ${pluginVersion || "of unknown version"}, the newest here is ${newest}: update it.`,
      ),
    ...devices
      .filter(({ differs }) => Object.keys(differs).length > 0)
      .map(
        ({ name, differs }) =>
          `${name} differs from the vault's settings in ${Object.keys(differs).join(", ")}: choose the remote's there when the plugin asks.`,
      ),
  ];
}

/** What a locked vault means and how to unlock it: the plugin keeps the lock until a person removes it. */
function lockRemark(waiting: readonly RosterDevice[]): string {
  const unlock = `open the settings of Self-hosted LiveSync, Maintenance, on a device that syncs and choose "I'm ready, unlock the database"`;
  return waiting.length === 0
    ? `A device has locked the vault, and all its devices have access: ${unlock}.`
    : `A device has locked the vault, as a rebuild does: on ${namesOf(waiting)}, fetch everything from the server again; when all devices sync, ${unlock}.`;
}

function namesOf(devices: readonly RosterDevice[]): string {
  return devices.map(({ name }) => name).join(", ");
}

function differences(
  own: Readonly<Record<string, unknown>> | undefined,
  preferred: Readonly<Record<string, unknown>> | undefined,
): RosterDevice["differs"] {
  if (own === undefined || preferred === undefined) {
    return {};
  }
  return Object.fromEntries(
    Object.entries(preferred)
      .filter(([key]) => !DEVICE_SETTINGS.has(key) && key in own)
      .filter(
        ([key, value]) => JSON.stringify(own[key]) !== JSON.stringify(value),
      )
      .map(([key, value]) => [key, { here: own[key], preferred: value }]),
  );
}

/** "1.0.9" before "1.0.16"; anything but a number counts as 0. */
function byVersion(one: string, other: string): number {
  const [a, b] = [one, other].map((text) =>
    text.split(".").map((part) => Number.parseInt(part, 10) || 0),
  );
  for (let at = 0; at < 4; at += 1) {
    const difference = (a?.[at] ?? 0) - (b?.[at] ?? 0);
    if (difference !== 0) {
      return difference;
    }
  }
  return 0;
}
