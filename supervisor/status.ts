import type { ActiveAlarm } from "./alerts/alerting.ts";
import type { CheckView } from "./checks/watched.ts";
import type { OffsiteWarning } from "./offsite/warning.ts";
import type { ServiceStats, ServiceView } from "./runtimes/runtime.ts";

export type ServiceStatus = ServiceView & {
  readonly stats: ServiceStats | null;
};

/** What `/api/status` answers and `hearth status --json` prints. Times in milliseconds since 1970. */
export interface Status {
  /** The whole in one sentence. */
  readonly verdict: string;
  /** Nothing is down, and all is known to be up; something may need a person all the same. */
  readonly ok: boolean;
  readonly phase: "starting" | "running" | "stopping";
  readonly at: number;
  readonly supervisor: {
    readonly pid: number;
    readonly address: string;
    readonly since: number;
    readonly home: string | null;
    /** What it runs from; null when it is no release (a checkout, an image). */
    readonly release: string | null;
    readonly memoryBytes: number;
  };
  readonly services: readonly ServiceStatus[];
  readonly checks: readonly CheckView[];
  /** What needs a person, each with the command that helps. */
  readonly attention: readonly Attention[];
  readonly notices: readonly string[];
  /** While no backup leaves this machine; it does not change the verdict. */
  readonly offsite: OffsiteWarning | null;
}

export interface Attention {
  readonly name: string;
  readonly level: "down" | "warning";
  readonly text: string;
  readonly since: number;
  readonly command: string;
  /** The last words of the failure; null where there are none. */
  readonly output: string | null;
  /** What was tried already, a sentence each. */
  readonly tried: readonly string[];
  /** Somebody knows: nobody is told until then, for this reason. */
  readonly silenced: { readonly until: number; readonly why: string } | null;
}

/**
 * Finds what needs somebody: services that do not run and are not about to, checks that are down and not inhibited, and
 * everything else that raised an alarm; `others` need a person and raise none.
 */
export function findAttention(
  services: readonly ServiceView[],
  checks: readonly CheckView[],
  alarms: readonly ActiveAlarm[],
  others: readonly Attention[],
): readonly Attention[] {
  const ofServices = services.flatMap((service): readonly Attention[] => {
    const base = {
      name: service.name,
      since: service.since,
      output: null,
      tried: [],
      silenced: silenceOf(alarms, service.name),
    };
    switch (service.state) {
      case "gave-up":
        return [
          {
            ...base,
            level: "down",
            text: `${service.name} is down: ${service.reason ?? "it ended too often"}`,
            command: `hearth logs ${service.name}; hearth restart ${service.name}`,
          },
        ];
      case "backing-off":
        return [
          {
            ...base,
            level: "down",
            text: `${service.name} ended and is started again: ${service.reason ?? "no reason known"}`,
            command: `hearth logs ${service.name}`,
          },
        ];
      case "ended":
        return [
          {
            ...base,
            level: "down",
            text: `${service.name} does not run: ${service.reason ?? "no reason known"}`,
            command: `hearth logs ${service.name}; hearth restart ${service.name}`,
          },
        ];
      case "absent":
        return [
          {
            ...base,
            level: "down",
            text: `${service.name} has no container any more`,
            command: "npm run deploy -- up --refresh",
          },
        ];
      case "unknown":
        return [
          {
            ...base,
            level: "warning",
            text: `nobody knows how ${service.name} is: ${service.reason ?? "Docker does not answer"}`,
            command: "docker ps --all",
          },
        ];
      case "waiting":
      case "starting":
      case "running":
      case "stopping":
      case "stopped":
        return [];
    }
  });
  const blamed = new Set(ofServices.map(({ name }) => name));
  const ofAlarms = alarms
    .filter(({ subject }) => !blamed.has(subject))
    .map((alarm): Attention => ({
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
    }));
  for (const { name } of ofAlarms) {
    blamed.add(name);
  }
  const ofChecks = checks
    .filter(
      (check) =>
        check.state === "down" &&
        check.inhibitedBy === null &&
        !blamed.has(check.name),
    )
    .map((check): Attention => ({
      name: check.name,
      level: "down",
      since: check.since,
      text: [
        `check ${check.name} is down: ${check.latest?.text ?? "no answer"}`,
        ...(check.healing === null ? [] : [check.healing]),
      ].join("; "),
      command: `hearth check ${check.name}`,
      output: null,
      tried: [],
      silenced: null,
    }));
  const ofOthers = others.filter(({ name }) => !blamed.has(name));
  const all = [...ofServices, ...ofAlarms, ...ofChecks, ...ofOthers];
  return [
    ...all.filter(({ level }) => level === "down"),
    ...all.filter(({ level }) => level === "warning"),
  ];
}

function silenceOf(
  alarms: readonly ActiveAlarm[],
  name: string,
): Attention["silenced"] {
  const silence = alarms.find(({ subject }) => subject === name)?.silence;
  return silence == null ? null : { until: silence.until, why: silence.why };
}

/** The whole in one sentence, and whether all is well. */
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
      verdict: `${listed(idle)} ${idle.length === 1 ? "needs" : "need"} a look.`,
    };
  }
  if (warned.length > 0) {
    return {
      ok: true,
      verdict: `${capital(numberWord(warned.length))} ${warned.length === 1 ? "thing needs" : "things need"} you; every service answers.`,
    };
  }
  const areModelsKnown = checks.every(
    ({ kind, state }) => kind !== "models" || state === "up",
  );
  return {
    ok: true,
    verdict: areModelsKnown
      ? "All is well."
      : "Everything runs; whether every model answers is not known yet.",
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
