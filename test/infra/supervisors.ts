import { get, type RequestOptions } from "node:https";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import { SIGN_IN } from "./sign-in.ts";
import { validConfig } from "./stack-config.ts";
import type { ReceivedAlarm } from "./alert-receiver.ts";
import { addresses } from "./two-engines.ts";

/** One line of a supervisor's history. */
export interface HistoryLine {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly kind: "service" | "check" | "act";
  readonly name: string;
  readonly to: string;
  readonly reason: string | null;
}

/**
 * The configuration of the scenarios' supervisors: checks often, so that faults are noticed in seconds, notifies a webhook, and
 * offers the sign-in with an account.
 */
export function supervisorConfig(webhook: string): string {
  const rhythm = { every: "5s", timeout: "5s" };
  const healing = { cooldown: "5s", grace: "5s" };
  // JSON is YAML.
  return JSON.stringify({
    checks: [
      {
        name: "gateway",
        kind: "http",
        url: "${GATEWAY_URL}/health/liveliness",
        ...rhythm,
        heal: { restart: "gateway", ...healing },
      },
      {
        name: "edge",
        kind: "container",
        container: "edge",
        ...rhythm,
        heal: { restart: "edge", ...healing },
      },
      {
        name: "postgres",
        kind: "postgres",
        service: "postgres",
        url: "${SUPERVISOR_DATABASE_URL}",
        ...rhythm,
      },
      {
        name: "redis",
        kind: "redis",
        service: "redis",
        url: "redis://${REDIS_HOST}:${REDIS_PORT}",
        password: "${REDIS_PASSWORD}",
        ca: "${REDIS_CA}",
        ...rhythm,
        heal: { restart: "redis", ...healing },
      },
      {
        name: "server-certificates",
        kind: "certificate",
        file: "${HEARTH_CERTIFICATES}",
        expect: { days_above: 300 },
      },
    ],
    notify: [{ kind: "webhook", url: webhook }],
    ...SIGN_IN,
  });
}

/** The history of a host's supervisor, oldest first. */
export async function historyOf(
  host: "a" | "b",
): Promise<readonly HistoryLine[]> {
  const { entries } = (await askSupervisor(
    host,
    "/api/history?limit=1000",
  )) as {
    readonly entries: readonly HistoryLine[];
  };
  return entries.toReversed();
}

/** Asserts that no supervisor has raised an alert since then (milliseconds since 1970). */
export async function noAlerts(
  { alerts }: { readonly alerts: readonly ReceivedAlarm[] },
  since: number,
): Promise<void> {
  for (const host of ["a", "b"] as const) {
    expect(
      (await historyOf(host)).filter(
        ({ at, to }) => at >= since && to === "alarm",
      ),
    ).toEqual([]);
  }
  expect(
    alerts.filter(
      ({ event, level, at }) =>
        event === "raised" && level !== "notice" && at >= since,
    ),
  ).toEqual([]);
}

/** The state of a service as the supervisor of a host shows it. */
export async function serviceState(
  host: "a" | "b",
  name: string,
): Promise<string | undefined> {
  const { services } = (await askSupervisor(host, "/api/status")) as {
    readonly services: readonly {
      readonly name: string;
      readonly state: string;
    }[];
  };
  return services.find((service) => service.name === name)?.state;
}

/** A page of a host's console that needs no sign-in. */
export async function openPage(host: "a" | "b", path: string): Promise<string> {
  const { body } = await askTls(`https://${addresses[host]}:4443${path}`, {
    rejectUnauthorized: false,
    headers: { accept: "text/html" },
  });
  return body;
}

async function askSupervisor(host: "a" | "b", path: string): Promise<unknown> {
  const password = validConfig["operatorPassword"] ?? "";
  const { status, body } = await askTls(
    `https://${addresses[host]}:4443${path}`,
    // The certificate is verified in encryption.scenario.ts.
    { rejectUnauthorized: false, auth: `operator:${password}` },
  );
  if (status !== 200) {
    throw new Error(`${path}: ${status}`);
  }
  return JSON.parse(body);
}

/** One GET; `fetch` has no option for an authority. */
export function askTls(
  url: string,
  options: Pick<
    RequestOptions,
    "auth" | "ca" | "headers" | "rejectUnauthorized"
  >,
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  return new Promise((resolve, reject) => {
    get(url, { ...options, agent: false }, (answer) => {
      text(answer).then(
        (body) => resolve({ status: answer.statusCode, body }),
        reject,
      );
    }).once("error", reject);
  });
}
