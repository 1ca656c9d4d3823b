import type { HostName } from "../config/config-schema.ts";

export const USAGE = `usage: npm run deploy -- VERB [--stack home]

  up        apply the program and the configuration to the hosts (--refresh reads the state of the hosts first); backs up the
            database and the notes before a migration (--no-backup skips the backup)
  preview   show what up would change
  refresh   update the state from the hosts
            all three: --without b excludes a host that is down
  rotate    replace a secret without a failed call: postgres, redis, master, notes, provider NAME
            master: the old key stays valid for --grace 24h, --end expires it now; provider: prompts for the new key;
            --refresh as for up, on a host that was replaced during a rotation
  upgrade   postgres: copy the data to the major version of Postgres in this version of Hearth, then up; the earlier cluster
            is kept until --forget-old deletes it
  destroy   remove everything except the data, after a confirmation or with --yes; --purge deletes the data as well and asks
            for the stack's name
  adopt     take over what runs on the hosts after the state was lost
  doctor    show where state, hosts and configuration disagree, and the commands that fix it
  cancel    after a killed run: release its lock, end leftover plugins, remove half-created resources from the state

  on Kubernetes (hearth:runtime): up, preview, refresh, cancel, destroy, rotate master, rotate provider

  --cwd     directory of Pulumi.yaml and Pulumi.<stack>.yaml (default: this project)

example: npm run deploy -- rotate master --grace 2h
`;

export interface Flags {
  readonly refresh?: boolean;
  readonly without?: string;
  readonly "no-backup"?: boolean;
  readonly grace?: string;
  readonly end?: boolean;
  readonly "forget-old"?: boolean;
  readonly purge?: boolean;
  readonly yes?: boolean;
}

/** A mistake in the command line, in one sentence. */
export class UsageError extends Error {}

/** The host given with --without. Throws UsageError. */
export function hostFlag(without: string | undefined): HostName | undefined {
  if (without === undefined || without === "a" || without === "b") {
    return without;
  }
  throw new UsageError("--without must be a or b.");
}
