import type { HostName } from "../config/config.ts";

/** One thing that was looked at on one host. */
export interface Finding {
  readonly host: HostName;
  readonly check:
    | "ssh"
    | "docker"
    | "version"
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
  /** What was seen, one sentence without its full stop. */
  readonly text: string;
  /** What mends it; null when nothing is to be done. */
  readonly mend: string | null;
}

type Told = Pick<Finding, "host" | "check">;

export function fine(told: Told, text: string): Finding {
  return { ...told, ok: true, text, mend: null };
}

export function wrong(told: Told, text: string, mend: string): Finding {
  return { ...told, ok: false, text, mend };
}

/** As people read it. */
export function sentenceOf({ host, text, mend }: Finding): string {
  return `host ${host.toUpperCase()}: ${text}${mend === null ? "" : `: ${mend}`}`;
}
