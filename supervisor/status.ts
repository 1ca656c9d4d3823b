import { forOwnStack } from "../core/installation.ts";
import { afterSubject } from "./alerts/alarm.ts";
import type { ActiveAlarm } from "./alerts/alerting.ts";
import type { CheckView } from "./checks/watched.ts";
import type { OffsiteWarning } from "./offsite/warning.ts";
import type { ServiceStats, ServiceView } from "./runtimes/runtime.ts";

export type ServiceStatus = ServiceView & {
  readonly stats: ServiceStats | null;
};

/** What `/api/status` answers and `hearth status --json` prints. Times in milliseconds since 1970. */
export interface Status {
  /** The overall state in one sentence. */
  readonly verdict: string;
  /** Everything is known to be up; there may be warnings. */
  readonly ok: boolean;
  readonly phase: "starting" | "running" | "stopping";
  readonly at: number;
  readonly supervisor: {
    readonly pid: number;
    readonly address: string;
    readonly since: number;
    readonly home: string | null;
    /** Null if it runs from a checkout or an image. */
    readonly release: string | null;
    readonly memoryBytes: number;
  };
  readonly services: readonly ServiceStatus[];
  readonly checks: readonly CheckView[];
  /** What needs a person, each with a command for the next step. */
  readonly attention: readonly Attention[];
  readonly notices: readonly string[];
  /** Set while no backup leaves this machine; it does not change the verdict. */
  readonly offsite: OffsiteWarning | null;
}

/**
 * What a finding is about. `id`: the name of a service, check, vault or job, the hash of a key, the id of a user, team or
 * organization; null: several, or none.
 */
export interface Subject {
  readonly topic:
    | "service"
    | "key"
    | "user"
    | "team"
    | "organization"
    | "vault"
    | "job"
    | "supervisor";
  readonly id: string | null;
}

export interface Attention {
  readonly name: string;
  readonly about: Subject;
  /** How many things it stands for; one if left out. */
  readonly count?: number;
  readonly level: "down" | "warning";
  readonly text: string;
  readonly since: number;
  readonly command: string;
  /** The last lines of output of the failure, if any. */
  readonly output: string | null;
  /** Attempted fixes, one sentence each. */
  readonly tried: readonly string[];
  /** Alerts are silenced until then, for this reason. */
  readonly silenced: { readonly until: number; readonly why: string } | null;
}

/**
 * What needs a person: services that are not running and not about to be, checks that are down without an unhealthy
 * dependency, and all other alarms; `others` raise no alarm.
 */
export function findAttention(
  services: readonly ServiceView[],
  checks: readonly CheckView[],
  alarms: readonly ActiveAlarm[],
  others: readonly Attention[],
): readonly Attention[] {
  const ofServices = services.flatMap(
    (service) => serviceAttention(service, alarms) ?? [],
  );
  const named = new Set(ofServices.map(({ name }) => name));
  const ofAlarms = alarms
    .filter(({ subject }) => !named.has(subject))
    .map((alarm) => alarmAttention(alarm, alarms));
  for (const { name } of ofAlarms) {
    named.add(name);
  }
  const ofChecks = checks
    .filter(
      (check) =>
        check.state === "down" &&
        check.inhibitedBy === null &&
        !named.has(check.name),
    )
    .map(checkAttention);
  const ofOthers = others.filter(({ name }) => !named.has(name));
  const all = [...ofServices, ...ofAlarms, ...ofChecks, ...ofOthers];
  return [
    ...all.filter(({ level }) => level === "down"),
    ...all.filter(({ level }) => level === "warning"),
  ];
}

/** Undefined while a service runs or is about to. */
function serviceAttention(
  service: ServiceView,
  alarms: readonly ActiveAlarm[],
): Attention | undefined {
  const { name, since, reason } = service;
  const found = (
    level: Attention["level"],
    text: string,
    command: string,
  ): Attention => ({
    name,
    about: { topic: "service", id: name },
    since,
    level,
    text,
    command,
    output: null,
    tried: [],
    silenced: silenceOf(alarms, name),
  });
  const logs = `hearth logs ${name}`;
  switch (service.state) {
    case "gave-up":
      return found(
        "down",
        `${name} is down: ${reason ?? "it ended too often"}`,
        `${logs}; hearth restart ${name}`,
      );
    case "backing-off":
      return found(
        "down",
        `${name} ended and is being restarted: ${reason ?? "reason unknown"}`,
        logs,
      );
    case "ended":
      return found(
        "down",
        `${name} is not running: ${reason ?? "reason unknown"}`,
        `${logs}; ${service.command ?? `hearth restart ${name}`}`,
      );
    case "absent":
      return found(
        "down",
        `${name}: container not found`,
        forOwnStack("npm run deploy -- up --refresh", process.env),
      );
    case "unknown":
      return found(
        "warning",
        `${name}: status unknown: ${reason ?? "Docker does not answer"}`,
        service.command ?? "docker ps --all",
      );
    case "waiting":
    case "starting":
    case "running":
    case "stopping":
    case "stopped":
      return undefined;
  }
}

function alarmAttention(
  alarm: ActiveAlarm,
  alarms: readonly ActiveAlarm[],
): Attention {
  return {
    name: alarm.subject,
    about: subjectOf(alarm),
    level: alarm.level,
    text: `${alarm.subject}${afterSubject(alarm)}`,
    since: alarm.since,
    command: alarm.command,
    output: alarm.output ?? null,
    tried: alarm.tried ?? [],
    silenced: silenceOf(alarms, alarm.subject),
  };
}

/** The number of things that need a person. */
export function countOf(
  attention: readonly Pick<Attention, "count">[],
): number {
  return attention.reduce((sum, { count = 1 }) => sum + count, 0);
}

/** By the fingerprint, whose first word is the kind of the alarm. */
export function subjectOf({
  fingerprint,
  subject,
}: Pick<ActiveAlarm, "fingerprint" | "subject">): Subject {
  const [kind = "", id = null] = fingerprint.split(/:(.*)/s);
  switch (kind) {
    case "check":
    case "service":
    case "healing":
      return { topic: "service", id: subject };
    case "job":
      return { topic: "job", id };
    case "soft-budget":
    case "unusual-spend":
      return { topic: "key", id: null };
    default:
      return kind.startsWith("notes-")
        ? { topic: "vault", id }
        : { topic: "supervisor", id: null };
  }
}

function checkAttention(check: CheckView): Attention {
  const text = `check ${check.name} is down: ${check.latest?.text ?? "no answer"}`;
  return {
    name: check.name,
    about: { topic: "service", id: check.name },
    level: "down",
    since: check.since,
    text: check.healing === null ? text : `${text}; ${check.healing}`,
    command: `hearth check ${check.name}`,
    output: null,
    tried: [],
    silenced: null,
  };
}

function silenceOf(
  alarms: readonly ActiveAlarm[],
  name: string,
): Attention["silenced"] {
  const silence = alarms.find(({ subject }) => subject === name)?.silence;
  return silence == null ? null : { until: silence.until, why: silence.why };
}
