/** A problem found by a check, a job or the supervisor. */
export interface Alarm {
  /** Identifies the problem: `check:gateway`, `job:postgres-backup`, `notes-seed:personal`. */
  readonly fingerprint: string;
  /**
   * down: something does not work; warning: it may stop working, or needs attention; notice: worth knowing, reported once and
   * not open afterwards.
   */
  readonly level: "down" | "warning" | "notice";
  /** What it concerns, in the operator's terms: `gateway`, `vault personal`. */
  readonly subject: string;
  /** What is wrong, in one sentence. */
  readonly text: string;
  /** The last output of the failure, if any. */
  readonly output?: string;
  /** Attempted fixes, one sentence each. */
  readonly tried?: readonly string[];
  /** The command for the next step. */
  readonly command: string;
  /** E-mail address of the user whom it concerns: mail channels with `owners` also write to it. */
  readonly owner?: string;
}

/** What follows the subject in a sentence about an alarm, whose text may begin with the subject: " is down", ": disk full". */
export function afterSubject({
  subject,
  text,
}: Pick<Alarm, "subject" | "text">): string {
  return text.startsWith(subject) ? text.slice(subject.length) : `: ${text}`;
}

/** The owner of an alarm, where one is known. */
export function ownedBy(owner: string | null): Pick<Alarm, "owner"> {
  return owner === null ? {} : { owner };
}

/** Receives alarms. Raising an active alarm again updates its text; the next notification is its reminder. */
export interface Alarms {
  readonly raise: (alarm: Alarm) => void;
  /** Ends an alarm and notifies those who were notified of it. Does nothing if it is not active. */
  readonly clear: (fingerprint: string) => void;
}

/** Raises an alarm while its cause lasts (`isOpen`), and clears it otherwise. */
export function raiseWhile(
  isOpen: boolean,
  alarms: Alarms,
  alarm: Alarm,
): void {
  if (isOpen) {
    alarms.raise(alarm);
  } else {
    alarms.clear(alarm.fingerprint);
  }
}

/** Also ends alarms that are not found again. */
export interface ReplacedAlarms extends Alarms {
  /** Raises these alarms, and clears all others whose fingerprint begins with `prefix`. */
  readonly replace: (prefix: string, found: readonly Alarm[]) => void;
  /** Clears all alarms whose fingerprint begins with `prefix`, except these: the others are about something that was removed. */
  readonly retain: (prefix: string, fingerprints: readonly string[]) => void;
}
