import { createServer } from "node:http";
import { HOUR_MS } from "../../core/duration.ts";
import { configSchema } from "../../supervisor/config/schema.ts";
import { createHome } from "../../supervisor/home/home.ts";
import { openHistory, type History } from "../../supervisor/history/history.ts";
import { openConsole } from "../../console/console.ts";
import { Supervision } from "../../supervisor/supervision.ts";
import { testCredentials } from "../supervisor/operator.ts";
import { programSpec, testRuntime } from "../supervisor/specs.ts";
import { temporaryHome } from "../supervisor/temporary-home.ts";
import { waitFor } from "../wait-for.ts";
import type { Status } from "../../supervisor/status.ts";
import { signInAt } from "./browser.ts";
import { freePort, listen } from "../servers/ports.ts";

export interface ConsoleTestbed {
  readonly address: string;
  readonly operatorPassword: string;
  /** Directory of the programs' logs. */
  readonly logs: string;
  readonly status: () => Status;
  /** Sets the answer of a watched service; undefined is healthy. */
  readonly sicken: (name: string, words: string | undefined) => void;
  readonly stop: () => Promise<void>;
}

export interface TestbedOptions {
  /** Names of services, each with a check. */
  readonly services: readonly string[];
  /** Services that are down from the start, with their answers. */
  readonly sick?: Readonly<Record<string, string>>;
  /** Writes a past into the history file before the supervisor starts. */
  readonly past?: (history: History, now: number) => void;
  readonly databaseUrl?: string;
  /** Further settings, as in a file. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Further variables of the supervisor. */
  readonly env?: Readonly<Record<string, string>>;
  /** Small programs that a real runtime runs as processes, each with a check of its name. */
  readonly programs?: readonly string[];
  /** Further checks, as in a file. */
  readonly checks?: readonly Readonly<Record<string, unknown>>[];
}

/** A real supervisor with its pages, checking small services whose health the test sets. */
export async function startConsoleTestbed(
  options: TestbedOptions,
): Promise<ConsoleTestbed> {
  const sick = new Map<string, string>(Object.entries(options.sick ?? {}));
  const watched = createServer((request, response) => {
    const words = sick.get(decodeURIComponent(request.url?.slice(1) ?? ""));
    response.writeHead(words === undefined ? 200 : 500).end(words ?? "{}");
  });
  const port = await listen(watched);
  const place = temporaryHome();
  createHome(place.home);
  const history = openHistory(place.home.history);
  options.past?.(history, Date.now());
  const programs = await Promise.all(
    (options.programs ?? []).map(async (name) => ({
      name,
      port: await freePort(),
    })),
  );
  const quick = { every: "1s", fail_after: 1, recover_after: 1 };
  const { operatorPassword } = testCredentials;
  const supervision = new Supervision({
    home: place.home,
    env: {
      HEARTH_JOBS: "on",
      HEARTH_OPERATOR_PASSWORD: operatorPassword,
      ...(options.databaseUrl === undefined
        ? {}
        : { SUPERVISOR_DATABASE_URL: options.databaseUrl }),
      ...options.env,
    },
    config: {
      leftOut: [],
      config: configSchema.parse({
        jobs: { time_zone: "UTC" },
        ...options.settings,
        checks: [
          ...options.services.map((name) => ({
            name,
            kind: "http",
            ...quick,
            url: `http://127.0.0.1:${port}/${name}`,
          })),
          ...programs.map(({ name, port }) => ({
            name,
            kind: "http",
            ...quick,
            url: `http://127.0.0.1:${port}`,
          })),
          ...(options.checks ?? []),
        ],
      }),
    },
    history,
    onCheck: () => {},
    onNotice: () => {},
  });
  const console = await openConsole(supervision, {
    host: "0.0.0.0",
    port: 0,
    onStopRequested: undefined,
  });
  const runtime = testRuntime(
    place.home,
    history,
    programs.map((program) => programSpec(place.directory, program)),
  );
  if (programs.length > 0) {
    supervision.show(runtime);
    await runtime.start();
  }
  supervision.start();
  await waitFor("the first result of every check", () =>
    supervision.status().checks.every(({ state }) => state !== "new"),
  );
  const address = console.address.replace("0.0.0.0", "127.0.0.1");
  const signOut = await signInAt(address, operatorPassword);
  return {
    address,
    operatorPassword,
    logs: place.home.logs,
    status: () => supervision.status(),
    sicken: (name, words) => {
      if (words === undefined) {
        sick.delete(name);
      } else {
        sick.set(name, words);
      }
    },
    stop: async () => {
      signOut();
      await supervision.rest();
      await runtime.stop("the test is over");
      await console.close();
      history.close();
      await new Promise((resolve) => watched.close(resolve));
      place.remove();
    },
  };
}

const EVERY_MS = 300_000;

/** A day with a check of every service each five minutes and an outage of one at night. */
export function anOrdinaryDay(
  services: readonly string[],
  troubled: string,
): NonNullable<TestbedOptions["past"]> {
  return ({ db }, now) => {
    const add = db.prepare(
      `INSERT OR REPLACE INTO check_results (name, at, ok, counted, latency_ms, covers_ms, text, measures)
       VALUES (?, ?, ?, ?, ?, ?, ?, NULL)`,
    );
    const event = db.prepare(
      "INSERT INTO events (at, kind, name, from_state, to_state, reason) VALUES (?, 'check', ?, ?, ?, ?)",
    );
    const [from, until] = [now - 7.5 * HOUR_MS, now - 7 * HOUR_MS];
    for (const [index, name] of services.entries()) {
      for (let at = now - 24 * HOUR_MS; at < now; at += EVERY_MS) {
        const down = name === troubled && at >= from && at < until;
        const stumbled = index === 2 && Math.abs(at - now + 4 * HOUR_MS) < 1;
        const apart =
          index === 3 && at > now - 2 * HOUR_MS && at < now - HOUR_MS;
        add.run(
          name,
          at,
          down || stumbled ? 0 : 1,
          apart ? 0 : 1,
          3 + index * 2 + (at % 7),
          EVERY_MS,
          down ? "answered 502, expected 200" : null,
        );
      }
    }
    event.run(from, troubled, "up", "down", "answered 502, expected 200");
    event.run(until, troubled, "down", "up", "answered 200");
  };
}

/** An alarm raised before this supervisor started. */
export function withAlarm(
  alarm: Readonly<Record<string, unknown>>,
  ageMs: number,
): NonNullable<TestbedOptions["past"]> {
  return ({ db }, now) => {
    db.prepare(
      "INSERT INTO alarms (id, fingerprint, raised_at, cleared_at, alarm, told) VALUES (?, ?, ?, NULL, ?, '{}')",
    ).run(
      String(alarm["fingerprint"]),
      String(alarm["fingerprint"]),
      now - ageMs,
      JSON.stringify(alarm),
    );
  };
}
