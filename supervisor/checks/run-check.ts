import { inWords } from "../../core/duration.ts";
import { codeOf, textOf } from "../../core/failure.ts";
import type { Check } from "./config.ts";
import { probeBackup } from "./kinds/backup.ts";
import { probeCertificate } from "./kinds/certificate.ts";
import { probeContainer } from "./kinds/container.ts";
import { probeCouchdb } from "./kinds/couchdb.ts";
import { probeDisk } from "./kinds/disk.ts";
import { probeHeartbeat } from "./kinds/heartbeat.ts";
import { probeHttp } from "./kinds/http.ts";
import {
  failing,
  type ProbeContext,
  type Measures,
  type ProbeResult,
} from "./kinds/probe.ts";
import { probeModels } from "./kinds/models.ts";
import { probePods } from "./kinds/pods.ts";
import { probePostgres } from "./kinds/postgres.ts";
import { probeRedis } from "./kinds/redis.ts";
import { probeTcp } from "./kinds/tcp.ts";

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
  /** Nothing listens at the address. */
  readonly closed?: true;
  /** The cause remains after a restart. */
  readonly restartFutile?: true;
}

/** Probes once. Never throws; exceeding the timeout of the check is a failure. */
export async function runCheck(
  check: Check,
  context: Omit<ProbeContext, "signal">,
): Promise<CheckResult> {
  const started = performance.now();
  const limit = new AbortController();
  const late = Promise.withResolvers<ProbeResult>();
  const timer = setTimeout(() => {
    late.resolve(failing(`no answer within ${inWords(check.timeout)}`));
    limit.abort();
  }, check.timeout);
  const probing = probe(check, { ...context, signal: limit.signal });
  const result = await Promise.race([probing.catch(resultOf), late.promise]);
  clearTimeout(timer);
  return {
    ok: result.ok,
    level: result.level ?? "down",
    text: result.text,
    measures: result.measures ?? {},
    ...(result.closed && { closed: result.closed }),
    ...(result.restartFutile && { restartFutile: result.restartFutile }),
    latencyMs: Math.round(performance.now() - started),
    at: context.now,
  };
}

function resultOf(error: unknown): ProbeResult {
  const result = failing(textOf(error) || "no answer");
  return codeOf(error) === "ECONNREFUSED"
    ? { ...result, closed: true }
    : result;
}

async function probe(
  check: Check,
  context: ProbeContext,
): Promise<ProbeResult> {
  switch (check.kind) {
    case "http":
      return probeHttp(check, context);
    case "tcp":
      return probeTcp(check, context);
    case "postgres":
      return probePostgres(check, context);
    case "redis":
      return probeRedis(check, context);
    case "couchdb":
      return probeCouchdb(check, context);
    case "container":
      return probeContainer(check, context);
    case "pods":
      return probePods(check, context);
    case "disk":
      return probeDisk(check, context);
    case "certificate":
      return probeCertificate(check, context);
    case "backup":
      return probeBackup(check, context);
    case "heartbeat":
      return probeHeartbeat(check, context);
    case "models":
      return probeModels(check, context);
  }
}
