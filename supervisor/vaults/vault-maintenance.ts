import { resolveWithin } from "../../core/resolve-within.ts";
import { MINUTE_MS } from "../../core/duration.ts";
import { sentencesOf } from "../../core/failure.ts";
import type { Context } from "../context.ts";
import type { Couch } from "./couch.ts";
import { vaultNames } from "./database.ts";
import { followDatabases } from "./database-updates.ts";
import type { VaultInspector } from "./vault-inspector.ts";
import { devicesOf, lockOf, openRosters } from "./known-rosters.ts";
import type { NotesState } from "./notes-state.ts";
import { openPendingConflicts } from "./pending-conflicts.ts";
import type { Provisioning } from "./provisioning.ts";
import { openQuietVaults } from "./quiet-vaults.ts";
import { dropUnfinished } from "./restore.ts";
import type { Mutex } from "../../core/mutex.ts";

const TICK_EVERY_MS = 2000;
const INSPECT_EVERY_MS = MINUTE_MS;
const STOP_WITHIN_MS = 5000;
const PREPARATION_FINGERPRINT = "notes-begin";

interface MaintenanceParts {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly inspector: VaultInspector;
  readonly provisioning: Provisioning;
  readonly turns: Mutex;
  /** Vaults that are being restored. */
  readonly busy: Set<string>;
}

/** Inspects the vaults once a minute, and at once after the notes service has started. */
export class VaultMaintenance {
  readonly #context: Context;
  readonly #parts: MaintenanceParts;
  readonly #quiet = openQuietVaults(Date.now);
  readonly #rosters: ReturnType<typeof openRosters>;
  readonly #pendingConflicts: ReturnType<typeof openPendingConflicts>;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #inspecting: Promise<void> | undefined;
  #leftoversDropped = false;
  #prepared = false;
  #nextInspection = 0;
  #seenStart = "";

  constructor(context: Context, parts: MaintenanceParts) {
    this.#context = context;
    this.#parts = parts;
    this.#rosters = openRosters(parts.couch, Date.now);
    this.#pendingConflicts = openPendingConflicts(
      parts.couch,
      parts.state,
      Date.now,
    );
  }

  start(): void {
    const { couch, inspector } = this.#parts;
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), TICK_EVERY_MS);
    void followDatabases(
      couch,
      { created: (vault) => inspector.inspect(vault), quiet: this.#quiet },
      this.#stopping.signal,
    );
  }

  /** The next inspection is due at once. */
  refresh(): void {
    this.#nextInspection = 0;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    if (this.#inspecting !== undefined) {
      await resolveWithin(this.#inspecting, STOP_WITHIN_MS);
    }
  }

  #tick(): void {
    const service = this.#context.runtime()?.inspect("notes");
    const start =
      service === undefined
        ? ""
        : `${service.pid} ${service.state} ${service.since}`;
    if (start !== this.#seenStart) {
      this.#nextInspection = 0;
      // A store that ended during a restore has a partial vault.
      this.#leftoversDropped = false;
      this.#prepared = false;
    }
    this.#seenStart = start;
    if (
      this.#inspecting !== undefined ||
      performance.now() < this.#nextInspection
    ) {
      return;
    }
    this.#inspecting = this.#inspectOnce()
      .catch((error: unknown) =>
        this.#context.onNotice(sentencesOf(error).join(" ")),
      )
      .finally(() => {
        this.#inspecting = undefined;
      });
  }

  async #inspectOnce(): Promise<void> {
    const { inspector, turns, busy } = this.#parts;
    let trouble: unknown;
    try {
      if (!this.#prepared) {
        await turns(() => this.#prepare());
      }
      this.#prepared = true;
    } catch (error) {
      trouble = error;
    }
    const skipped = this.#quiet.take();
    const restored = new Set(busy);
    const answered = await inspector.inspectAll(skipped);
    this.#reportPreparation(trouble, answered);
    if (answered) {
      await this.#publish(skipped, restored);
    }
    this.#nextInspection =
      performance.now() + (answered ? INSPECT_EVERY_MS : 0);
  }

  #reportPreparation(trouble: unknown, answered: boolean): void {
    const { alarms } = this.#context;
    // A store that does not respond is reported by the checks.
    if (trouble === undefined) {
      alarms.clear(PREPARATION_FINGERPRINT);
    } else if (answered) {
      alarms.raise({
        fingerprint: PREPARATION_FINGERPRINT,
        level: "warning",
        subject: "notes",
        text: `creating the first vault or cleaning up an interrupted restore failed: ${sentencesOf(trouble).join(" ")}`,
        command: "hearth notes list",
      });
    }
  }

  /** Publishes devices and conflicts, and marks the vaults that were not being restored as read. */
  async #publish(
    skipped: ReadonlySet<string>,
    restored: ReadonlySet<string>,
  ): Promise<void> {
    const { couch, busy } = this.#parts;
    const names = await vaultNames(couch);
    const rosters = await this.#rosters(names, skipped);
    this.#context.showDevices({
      vaults: names,
      devices: rosters.flatMap(devicesOf),
    });
    this.#context.need("locks", rosters.flatMap(lockOf));
    this.#context.need(
      "conflicts",
      await this.#pendingConflicts(names, skipped),
    );
    this.#quiet.read(
      names.filter((vault) => !restored.has(vault) && !busy.has(vault)),
    );
  }

  /** Each step once after a start of this process or the store, as soon as the store answers. */
  async #prepare(): Promise<void> {
    const { couch, busy, provisioning } = this.#parts;
    if (!this.#leftoversDropped) {
      for (const vault of await dropUnfinished(couch, busy)) {
        this.#context.onNotice(
          `the restore of vault ${vault} was interrupted and its partial copy was dropped: run the restore again.`,
        );
      }
    }
    this.#leftoversDropped = true;
    await provisioning.recordMembers();
    await this.#createFirstVault();
  }

  async #createFirstVault(): Promise<void> {
    const { couch, state, provisioning } = this.#parts;
    const vault = this.#context.config.notes.first_vault;
    if (vault === "off" || state.firstVaultCreated()) {
      return;
    }
    const names = await vaultNames(couch);
    const isOnly = names.every((name) => name === vault);
    const isFree =
      names.length === 0 || (await provisioning.isUnfinished(vault));
    if (isOnly && isFree && state.vault(vault).member === null) {
      await provisioning.add({ vault });
    }
    state.recordFirstVault();
  }
}
