import type { HostName } from "../config/config-schema.ts";

/** Result of one check on one host. */
export interface Finding {
  readonly host: HostName;
  readonly check:
    | "ssh"
    | "docker"
    | "version"
    | "memory"
    | "image"
    | "disk"
    | "directory"
    | "clock"
    | "address"
    | "port"
    | "exposed"
    | "reach"
    | "runner";
  readonly ok: boolean;
  /** The result, one sentence without its full stop. */
  readonly text: string;
  /** The command that fixes it; null if nothing needs to be done. */
  readonly fix: string | null;
}

/** A check that failed. */
export interface Problem extends Finding {
  readonly fix: string;
}

type Subject = Pick<Finding, "host" | "check">;

export function fine(subject: Subject, text: string): Finding {
  return { ...subject, ok: true, text, fix: null };
}

export function wrong(subject: Subject, text: string, fix: string): Problem {
  return { ...subject, ok: false, text, fix };
}

/** For people. */
export function sentenceOf({ host, text, fix }: Finding): string {
  return `host ${host.toUpperCase()}: ${text}${fix === null ? "" : `: ${fix}`}`;
}
