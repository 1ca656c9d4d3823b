import { inWords } from "../../core/duration.ts";
import { textOf } from "../../core/failure.ts";
import type { Check } from "./config.ts";
import { lookAtBackup } from "./kinds/backup.ts";
import { lookAtCertificate } from "./kinds/certificate.ts";
import { lookAtContainer } from "./kinds/container.ts";
import { lookAtCouchdb } from "./kinds/couchdb.ts";
import { lookAtDisk } from "./kinds/disk.ts";
import { lookAtHeartbeat } from "./kinds/heartbeat.ts";
import { lookAtHttp } from "./kinds/http.ts";
import {
  failing,
  type Lookout,
  type Measures,
  type Seen,
} from "./kinds/look.ts";
import { lookAtModels } from "./kinds/models.ts";
import { lookAtPostgres } from "./kinds/postgres.ts";
import { lookAtRedis } from "./kinds/redis.ts";
import { lookAtTcp } from "./kinds/tcp.ts";

export interface CheckResult {
  readonly ok: boolean;
  /** If not ok: whether it is down, or still works and needs attention. */
  readonly level: "down" | "warning";
  readonly latencyMs: number;
  /** One line, without secrets. */
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly measures: Measures;
}

/** Probes once. Never throws; exceeding the timeout of the check is a failure. */
export async function runCheck(
  check: Check,
  lookout: Omit<Lookout, "signal">,
): Promise<CheckResult> {
  const begun = performance.now();
  const limit = new AbortController();
  const late = Promise.withResolvers<Seen>();
  const timer = setTimeout(() => {
    late.resolve(failing(`no answer within ${inWords(check.timeout)}`));
    limit.abort();
  }, check.timeout);
  const look = lookAt(check, { ...lookout, signal: limit.signal });
  const seen = await Promise.race([
    look.catch((error: unknown) => failing(textOf(error) || "no answer")),
    late.promise,
  ]);
  clearTimeout(timer);
  return {
    ok: seen.ok,
    level: seen.level ?? "down",
    text: seen.text,
    measures: seen.measures ?? {},
    latencyMs: Math.round(performance.now() - begun),
    at: lookout.now,
  };
}

async function lookAt(check: Check, lookout: Lookout): Promise<Seen> {
  switch (check.kind) {
    case "http":
      return lookAtHttp(check, lookout);
    case "tcp":
      return lookAtTcp(check, lookout);
    case "postgres":
      return lookAtPostgres(check, lookout);
    case "redis":
      return lookAtRedis(check, lookout);
    case "couchdb":
      return lookAtCouchdb(check, lookout);
    case "container":
      return lookAtContainer(check, lookout);
    case "disk":
      return lookAtDisk(check, lookout);
    case "certificate":
      return lookAtCertificate(check, lookout);
    case "backup":
      return lookAtBackup(check, lookout);
    case "heartbeat":
      return lookAtHeartbeat(check, lookout);
    case "models":
      return lookAtModels(check, lookout);
  }
}
