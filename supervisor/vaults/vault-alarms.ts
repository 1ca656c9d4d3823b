import type { Alarm } from "../alerts/alarm.ts";
import type { Deletions } from "./deletions.ts";
import { SEED_ID } from "./livesync.ts";
import type { FailingVault } from "./troubled-vaults.ts";
import { unreadableWords } from "./unreadable-vault.ts";

const naming = (kind: string) => (vault: string) => `notes-${kind}:${vault}`;

/** Fingerprints of the alarms about a vault. */
export const fingerprints = {
  inspection: naming("look"),
  gone: naming("gone"),
  recreated: naming("anew"),
  seed: naming("seed"),
  seedLost: naming("seed-lost"),
  seedMissing: naming("seed-missing"),
  rules: naming("rules"),
  deletions: naming("deletions"),
  conflicts: naming("conflicts"),
  locked: naming("locked"),
  hung: naming("hung"),
  failing: naming("failing"),
} as const;

export function allFingerprints(vault: string): readonly string[] {
  return Object.values(fingerprints).map((name) => name(vault));
}

export function hungAlarm(vault: string, isHung: boolean): Alarm {
  return {
    fingerprint: fingerprints.hung(vault),
    level: isHung ? "down" : "warning",
    subject: `vault ${vault}`,
    text: isHung
      ? `vault ${vault} does not respond: the notes store reopens it within 30 s.`
      : `vault ${vault} did not respond and was reopened: see the notes store's log.`,
    command: "hearth logs notes",
  };
}

/** One alarm per vault, with the words of all its failures. */
export function failingAlarms(
  failing: readonly FailingVault[],
): readonly Alarm[] {
  const databases = [...new Set(failing.map(({ database }) => database))];
  return databases.map((database) => {
    const words = failing
      .filter((each) => each.database === database)
      .map(({ reason }) => failureWords(database, reason));
    return {
      fingerprint: fingerprints.failing(database),
      level: "down",
      subject: `vault ${database}`,
      text: words.map(({ text }) => text).join(" "),
      command: words[0]!.command,
    };
  });
}

function failureWords(
  vault: string,
  reason: FailingVault["reason"],
): Pick<Alarm, "text" | "command"> {
  switch (reason) {
    case "damaged_document":
      return {
        text: `documents of vault ${vault} are damaged, and the log of the notes store names them: check the disk (\`dmesg\`), then run \`hearth jobs run notes-drill\`, which replaces them from the newest backup.`,
        command: "hearth jobs run notes-drill",
      };
    case "damaged_file":
      return {
        text: unreadableWords(vault, "damaged"),
        command: "hearth doctor",
      };
    case "disk":
      return {
        text: `vault ${vault} could not be read or written within the last hour: its disk fails or is read-only, or its file cannot be opened. Check the disk (\`dmesg\`) and who may open the file; the log of the notes store names the reason.`,
        command: "hearth logs notes",
      };
    default:
      return reason satisfies never;
  }
}

export function missingAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.gone(vault),
    level: "down",
    subject: `vault ${vault}`,
    text: `the database of vault ${vault} is missing, so its devices cannot sync: restore it, or remove the vault with \`hearth notes remove ${vault}\`.`,
    command: `hearth notes restore --vault ${vault}`,
  };
}

export function recreatedAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.recreated(vault),
    level: "warning",
    subject: `vault ${vault}`,
    text: `the database of vault ${vault} was recreated (a device rebuilt it, or it was dropped by hand): its access rules were restored and its new security seed was accepted; the old one is kept.`,
    command: `hearth notes devices ${vault}`,
  };
}

export function closedAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.seed(vault),
    level: "down",
    subject: `vault ${vault}`,
    text: `the security seed of vault ${vault} was replaced, and notes written under the new one cannot be read with the old one: access is blocked until you restore the old seed, or accept the new one with --accept.`,
    command: `hearth notes restore-seed ${vault}`,
  };
}

export function putBackAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.seedLost(vault),
    level: "warning",
    subject: `vault ${vault}`,
    text: `the security seed of vault ${vault} was missing and was restored immediately from its copy: find out what removed it.`,
    command: `hearth notes devices ${vault}`,
  };
}

export function missingSeedAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.seedMissing(vault),
    level: "down",
    subject: `vault ${vault}`,
    text: `vault ${vault} is encrypted and has no security seed, and no backup on this machine contains it: the next device that syncs creates a new seed, with which the stored notes cannot be read. Before that, copy ${SEED_ID} from the server that the notes came from; if it no longer exists, overwrite the server data from a device that has all notes.`,
    command: `hearth notes devices ${vault}`,
  };
}

export function rulesAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.rules(vault),
    level: "warning",
    subject: `vault ${vault}`,
    text: `the access rules of vault ${vault} were changed from outside and were restored.`,
    command: `hearth notes list`,
  };
}

export function deletionsAlarm(
  vault: string,
  { deleted, made, left }: NonNullable<Deletions["mass"]>,
): Alarm {
  return {
    fingerprint: fingerprints.deletions(vault),
    level: "warning",
    subject: `vault ${vault}`,
    text: `${deleted} notes of vault ${vault} were deleted in a short time${made > 0 ? ` (and ${made} created)` : ""}; ${left} are left. If this was not intended, stop the devices and restore.`,
    command: `hearth notes restore --vault ${vault} --as ${vault}-before`,
  };
}
