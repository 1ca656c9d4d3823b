import { isRejectedDatabase } from "./options.ts";
import { shownNode } from "./nodes.ts";
import { REDIS_VARIABLES, type RedisPlace } from "./place.ts";

/** Of a Redis that cannot hold limits. */
export const CLUSTER_REJECTED =
  "Redis runs as a cluster, and the limits of a call are one script over the keys of all its payers, which a cluster keeps on different nodes: use one primary, with Sentinel for failover (REDIS_SENTINELS), or a managed Redis with cluster mode disabled.";

/** Whether the output of INFO is of a node of a cluster. */
export function isCluster(info: string): boolean {
  return /^cluster_enabled:1/m.test(info);
}

/** Where it was looked for, without the login. */
export function shownPlace({ nodes, sentinel }: RedisPlace): string {
  const shown = nodes.map(shownNode).join(", ");
  return sentinel === null
    ? shown
    : `"${sentinel.masterName}" of the sentinels ${shown}`;
}

/** What to change for a connection to succeed; null: the error is no mistake in the settings. */
export function adviceFor(error: Error, place: RedisPlace): string | null {
  const { message } = error;
  const variables = REDIS_VARIABLES;
  if (isRejectedDatabase(error)) {
    return `Redis rejects database ${place.database}: set ${variables.database}, or the path of ${variables.url}, to a lower number (the setting "databases" of Redis is their count) that the user may select.`;
  }
  if (/No such master|got an invalid reply: null/.test(message)) {
    return `The sentinels do not know "${place.sentinel?.masterName}": set ${variables.masterName} to the name that follows "sentinel monitor" in their configuration.`;
  }
  if (
    /WRONGPASS|NOAUTH|invalid username-password|invalid password/i.test(message)
  ) {
    return /sentinel/i.test(message)
      ? `The sentinels reject the login: set ${variables.sentinelPassword}, and ${variables.sentinelUsername} for a user of their ACL.`
      : `Redis rejects the login: set ${variables.password}, and ${variables.username} for a user of its ACL.`;
  }
  if (/NOPERM/.test(message)) {
    return `The user of Redis lacks a permission (${message}): allow it with ACL SETUSER, all keys and commands without pub/sub and administration: ~* +@all -@admin -@dangerous +info.`;
  }
  return null;
}
