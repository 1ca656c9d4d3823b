/** Something a person should know, found by a check, a job or the supervisor itself. */
export interface Alarm {
  /** The same for the same trouble, however often it is found: `check:gateway`, `job:postgres-backup`, `notes-seed:personal`. */
  readonly fingerprint: string;
  /** down: something does not work; warning: it will not, or a person should look. */
  readonly level: "down" | "warning";
  /** What it is about, as an operator names it: `gateway`, `vault personal`. */
  readonly subject: string;
  /** One sentence: what is wrong. */
  readonly text: string;
  /** The last words of the failure, where there are any. */
  readonly output?: string;
  /** What was tried already, a sentence each. */
  readonly tried?: readonly string[];
  /** The command that looks further, or mends it. */
  readonly command: string;
}

/** Where alarms go. Raising what is raised already changes its text and tells nobody anew before its reminder is due. */
export interface Alarms {
  readonly raise: (alarm: Alarm) => void;
  /** The trouble is over; those who were told of it are told so. Nothing happens when it was not raised. */
  readonly clear: (fingerprint: string) => void;
}
