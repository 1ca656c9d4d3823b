import { hash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HOUR_MS } from "../../core/duration.ts";
import type { Alarm, Alarms } from "../../supervisor/alerts/alarm.ts";
import { openCouch, type Couch } from "../../supervisor/vaults/couch.ts";
import { Database } from "../../supervisor/vaults/database.ts";
import { VaultInspector } from "../../supervisor/vaults/vault-inspector.ts";
import {
  openNotesState,
  type NotesState,
} from "../../supervisor/vaults/notes-state.ts";
import { Provisioning } from "../../supervisor/vaults/provisioning.ts";
import {
  openEscrow,
  type EscrowFiles,
} from "../../supervisor/vaults/seed-escrow.ts";
import { createMutex } from "../../core/mutex.ts";
import {
  openVaultFiles,
  type VaultFiles,
} from "../../supervisor/vaults/vault-file.ts";
import { alarmsIn } from "./raised-alarms.ts";
import type {
  RunningServer,
  ServerUnderTest,
} from "../contract/server-under-test.ts";

/** The supervisor's maintenance of one notes store, with separate files and a clock that tests can move. */
export interface NotesTestbed {
  readonly server: RunningServer;
  readonly directory: string;
  readonly backups: string;
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  readonly provisioning: Provisioning;
  readonly inspector: VaultInspector;
  readonly busy: Set<string>;
  readonly alarms: Alarms;
  /** Alarms that are raised and not cleared, by fingerprint. */
  readonly raised: ReadonlyMap<string, Alarm>;
  /** Vaults that were reported as large. */
  readonly large: string[];
  readonly freeBytes: () => number;
  readonly now: () => number;
  /** Moves the clock forward by milliseconds. */
  readonly pass: (ms: number) => void;
  /** A new testbed on the same files, as after a restart of the supervisor. */
  readonly again: () => NotesTestbed;
  readonly close: () => Promise<void>;
}

/** Starts a new store, or empties the CouchDB of COUCHDB_URL. */
export async function openNotesTestbed(
  under: ServerUnderTest,
): Promise<NotesTestbed> {
  const server = await under.start();
  const directory = mkdtempSync(join(tmpdir(), "hearth-notes-"));
  return testbedOn(server, directory, 0);
}

function testbedOn(
  server: RunningServer,
  directory: string,
  ahead: number,
): NotesTestbed {
  let shift = ahead;
  const now = () => Date.now() + shift;
  const couch = openCouch({
    url: server.url,
    admin: server.admin.name,
    password: () => server.admin.password,
    now,
  });
  const state = openNotesState(join(directory, "notes-state.json"), () => {});
  const escrow = openEscrow(join(directory, "escrow"));
  const files = openVaultFiles(join(directory, "vaults"));
  const backups = join(directory, "backups", "notes");
  const raised = new Map<string, Alarm>();
  const alarms = alarmsIn(raised);
  const busy = new Set<string>();
  const large: string[] = [];
  const freeBytes = () => 1e8;
  const inspector = new VaultInspector({
    couch,
    state,
    escrow,
    backups,
    alarms,
    deletionLimits: { least: 5, percent: 20, within: HOUR_MS },
    largeFrom: 2_000_000,
    turns: createMutex(),
    busy,
    onLarge: (vault) => large.push(vault),
    freeBytes,
    now,
  });
  const provisioning = new Provisioning({
    couch,
    files,
    state,
    address: () => server.url,
    escrow,
    backups,
  });
  return {
    server,
    directory,
    backups,
    couch,
    state,
    escrow,
    files,
    provisioning,
    inspector,
    busy,
    alarms,
    raised,
    large,
    freeBytes,
    now,
    pass: (ms) => {
      shift += ms;
    },
    again: () => testbedOn(server, directory, shift),
    close: async () => {
      rmSync(directory, { recursive: true, force: true });
      await server.stop();
    },
  };
}

/** An unencrypted note as the plugin writes it: a document and its chunk. */
export function noteDocuments(
  path: string,
  text: string,
  mtime: number,
): readonly Readonly<Record<string, unknown>>[] {
  const chunk = `h:${hash("sha256", `${path}:${text}`)}`;
  return [
    { _id: chunk, type: "leaf", data: text },
    {
      _id: path.toLowerCase(),
      type: "plain",
      path,
      mtime,
      ctime: mtime,
      size: text.length,
      children: [chunk],
      eden: {},
    },
  ];
}

/** Writes notes as one device does. */
export async function writeNotes(
  couch: Couch,
  vault: string,
  count: number,
): Promise<void> {
  const documents = Array.from({ length: count }, (_each, index) =>
    noteDocuments(`note ${index}.md`, `text of ${index}`, 1_800_000_000_000),
  );
  await new Database(couch, vault).write(documents.flat());
}
