import type { Alarm } from "../alerts/alarm.ts";
import type { Deletions } from "./deletions.ts";

const naming = (kind: string) => (vault: string) => `notes-${kind}:${vault}`;

/** What the alarms about a vault are known by. */
export const fingerprints = {
  look: naming("look"),
  gone: naming("gone"),
  anew: naming("anew"),
  seed: naming("seed"),
  seedLost: naming("seed-lost"),
  rules: naming("rules"),
  deletions: naming("deletions"),
  conflicts: naming("conflicts"),
  locked: naming("locked"),
  hung: naming("hung"),
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
      ? `vault ${vault} does not respond: the notes store reopens it by itself within half a minute.`
      : `vault ${vault} did not respond and was reopened: the notes store's log says when.`,
    command: "hearth logs notes",
  };
}

export function goneAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.gone(vault),
    level: "down",
    subject: `vault ${vault}`,
    text: `the database of vault ${vault} is gone, so its devices cannot sync: restore it, or forget it with \`hearth notes remove ${vault}\`.`,
    command: `hearth notes restore --vault ${vault}`,
  };
}

export function anewAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.anew(vault),
    level: "warning",
    subject: `vault ${vault}`,
    text: `the database of vault ${vault} was made anew (a device rebuilt it, or somebody dropped it): its access rules were put back, its new security seed is accepted, the old one kept.`,
    command: `hearth notes devices ${vault}`,
  };
}

export function closedAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.seed(vault),
    level: "down",
    subject: `vault ${vault}`,
    text: `the security seed of vault ${vault} was replaced by another, and what is written under that one stays unreadable: access is taken away until you put the old seed back, or take the new one with --accept.`,
    command: `hearth notes restore-seed ${vault}`,
  };
}

export function putBackAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.seedLost(vault),
    level: "warning",
    subject: `vault ${vault}`,
    text: `the security seed of vault ${vault} was gone and was put back at once from its copy: find out what removed it.`,
    command: `hearth notes devices ${vault}`,
  };
}

export function rulesAlarm(vault: string): Alarm {
  return {
    fingerprint: fingerprints.rules(vault),
    level: "warning",
    subject: `vault ${vault}`,
    text: `the access rules of vault ${vault} were changed from outside and were put back.`,
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
    text: `${deleted} notes of vault ${vault} were deleted in a short time${made > 0 ? ` (and ${made} made)` : ""}; ${left} are left. If nobody meant it, stop the devices and restore.`,
    command: `hearth notes restore --vault ${vault} --as ${vault}-before`,
  };
}
