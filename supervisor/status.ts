import type { CheckView } from "./checks/watch.ts";
import type { ServiceStats, ServiceView } from "./runtime.ts";

export type ServiceStatus = ServiceView & {
  readonly stats: ServiceStats | null;
};

/** What `/api/status` answers and `hearth status --json` prints. Times in milliseconds since 1970. */
export type Status = {
  /** The whole in one sentence. */
  readonly verdict: string;
  /** Something is down, or not known to be up. */
  readonly ok: boolean;
  readonly phase: "starting" | "running" | "stopping";
  readonly at: number;
  readonly supervisor: {
    readonly pid: number;
    readonly address: string;
    readonly since: number;
    readonly home: string | null;
    readonly memoryBytes: number;
  };
  readonly services: readonly ServiceStatus[];
  readonly checks: readonly CheckView[];
  /** What needs a person, each with the command that helps. */
  readonly attention: readonly Attention[];
  readonly notices: readonly string[];
};

export type Attention = {
  readonly name: string;
  readonly level: "down" | "warning";
  readonly text: string;
  readonly since: number;
  readonly command: string;
};

/** Finds what needs somebody: services that do not run and are not about to, checks that are down and not inhibited. */
export function findAttention(
  services: readonly ServiceView[],
  checks: readonly CheckView[],
): readonly Attention[] {
  const ofServices = services.flatMap((service): readonly Attention[] => {
    const base = { name: service.name, since: service.since };
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
            command: "docker restart hearth-socket-proxy",
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
    }));
  return [...ofServices, ...ofChecks];
}

/** The whole in one sentence, and whether all is well. */
export function judge(
  phase: Status["phase"],
  services: readonly ServiceView[],
  attention: readonly Attention[],
): { readonly ok: boolean; readonly verdict: string } {
  if (phase === "stopping")
    return { ok: false, verdict: "Hearth is stopping." };
  const named = (level: Attention["level"]) => [
    ...new Set(
      attention.filter((each) => each.level === level).map(({ name }) => name),
    ),
  ];
  const names = named("down");
  if (names.length > 0)
    return {
      ok: false,
      verdict: `${listed(names)} ${names.length === 1 ? "is" : "are"} down.`,
    };
  const doubtful = named("warning");
  if (doubtful.length > 0)
    return {
      ok: false,
      verdict: `${listed(doubtful)} ${doubtful.length === 1 ? "needs" : "need"} a look.`,
    };
  const notYet = services
    .filter(({ state }) => state !== "running")
    .map(({ name }) => name);
  if (notYet.length > 0)
    return {
      ok: false,
      verdict: `${listed(notYet)} ${notYet.length === 1 ? "is" : "are"} not up yet.`,
    };
  return { ok: true, verdict: "All is well." };
}

function listed(names: readonly string[]): string {
  const last = names.at(-1) ?? "";
  const text =
    names.length < 2 ? last : `${names.slice(0, -1).join(", ")} and ${last}`;
  return text.charAt(0).toUpperCase() + text.slice(1);
}
