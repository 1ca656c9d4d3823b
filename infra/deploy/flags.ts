import type { HostName } from "../config/config.ts";

export const USAGE = `usage: npm run deploy -- VERB [--stack home]

  up        make the hosts what the program and the configuration say (--refresh looks at the hosts first); before the
            database is migrated it is backed up, with the notes (--no-backup goes on without)
  preview   say what up would do
  refresh   look at the hosts and remember what is there
            all three: --without b leaves out a host that is away
  rotate    replace a secret without a failed call: postgres, redis, master, notes, provider NAME
            master: the old key works for --grace 24h more, --end ends that now; provider: the new key is asked for
  upgrade   postgres: bring the data to the major version of Postgres that this version of Hearth has, then as up; --forget-old
            deletes the earlier cluster, which is kept
  destroy   remove everything but the data; asks first, or --yes; --purge removes the data too and asks for the stack's name
  adopt     take over what runs on the hosts when the state was lost
  doctor    say what state, hosts and configuration disagree about, and what mends it
  cancel    after a run that was killed: lift its lock, end the plugins it left, and clear what it had half created

  --cwd     the directory of Pulumi.yaml and Pulumi.<stack>.yaml, when it is not this one

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
export class NotUnderstood extends Error {}

/** The host that --without names. Throws NotUnderstood. */
export function hostFlag(without: string | undefined): HostName | undefined {
  if (without === undefined || without === "a" || without === "b") {
    return without;
  }
  throw new NotUnderstood("--without takes a host: a or b.");
}
