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

export interface Attention {
  readonly name: string;
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
        "npm run deploy -- up --refresh",
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
    level: alarm.level,
    text: alarm.text.startsWith(alarm.subject)
      ? alarm.text
      : `${alarm.subject}: ${alarm.text}`,
    since: alarm.since,
    command: alarm.command,
    output: alarm.output ?? null,
    tried: alarm.tried ?? [],
    silenced: silenceOf(alarms, alarm.subject),
  };
}

function checkAttention(check: CheckView): Attention {
  const text = `check ${check.name} is down: ${check.latest?.text ?? "no answer"}`;
  return {
    name: check.name,
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

/** The overall state in one sentence. */
export function judge(
  phase: Status["phase"],
  services: readonly ServiceView[],
  attention: readonly Attention[],
  checks: readonly Pick<CheckView, "kind" | "state">[],
): { readonly ok: boolean; readonly verdict: string } {
  if (phase === "stopping") {
    return { ok: false, verdict: "Hearth is stopping." };
  }
  const named = (level: Attention["level"]) => [
    ...new Set(
      attention.filter((each) => each.level === level).map(({ name }) => name),
    ),
  ];
  const names = named("down");
  if (names.length > 0) {
    return {
      ok: false,
      verdict: `${listed(names)} ${names.length === 1 ? "is" : "are"} down.`,
    };
  }
  const warned = named("warning");
  const idle = services
    .filter(({ state }) => state !== "running")
    .map(({ name }) => name);
  const notYet = idle.filter((name) => !warned.includes(name));
  if (notYet.length > 0) {
    return {
      ok: false,
      verdict: `${listed(notYet)} ${notYet.length === 1 ? "is" : "are"} not up yet.`,
    };
  }
  if (idle.length > 0) {
    return {
      ok: false,
      verdict: `${listed(idle)} ${idle.length === 1 ? "needs" : "need"} attention.`,
    };
  }
  if (warned.length > 0) {
    return {
      ok: true,
      verdict: `${capital(numberWord(warned.length))} ${warned.length === 1 ? "thing needs" : "things need"} attention; every service answers.`,
    };
  }
  const areModelsKnown = checks.every(
    ({ kind, state }) => kind !== "models" || state === "up",
  );
  return {
    ok: true,
    verdict: areModelsKnown
      ? "All is well."
      : "Everything is running; some models have not been checked yet.",
  };
}

function numberWord(count: number): string {
  const words = ["no", "one", "two", "three", "four", "five", "six"];
  return words[count] ?? String(count);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function listed(names: readonly string[]): string {
  const last = names.at(-1) ?? "";
  const text =
    names.length < 2 ? last : `${names.slice(0, -1).join(", ")} and ${last}`;
  return capital(text);
}
