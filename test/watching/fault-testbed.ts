import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import type { HistoryEntry } from "../../supervisor/history/history.ts";
import type { Status } from "../../supervisor/status.ts";
import { mountSmallDisk, unmountDisk } from "../servers/small-disk.ts";
import { prepareStack, type Stack, type StartedStack } from "../stack/stack.ts";
import { startFaultProxy, type FaultProxy } from "./proxy.ts";
import { listen, portOf } from "../servers/ports.ts";

/** Intervals and limits of the checks and restarts, written as in config/supervisor.yaml. */
interface CheckTiming {
  readonly every: string;
  readonly timeout: string;
  readonly cooldown: string;
  readonly grace: string;
  readonly max: number;
}

/** The shipped values. */
export const shippedTiming: CheckTiming = {
  every: "30s",
  timeout: "10s",
  cooldown: "60s",
  grace: "30s",
  max: 3,
};

/** The embedded stack as started for the first time, with a receiver of its alerts. */
export interface FaultTestbed {
  readonly checkTiming: CheckTiming;
  readonly stack: Stack;
  /** Starts it with the same settings, after its supervisor has ended. */
  readonly startAgain: () => Promise<StartedStack>;
  readonly home: string;
  /** Whether the home is on a separate small disk that can be filled. */
  readonly ownDisk: boolean;
  readonly proxy: FaultProxy;
  readonly pidOf: (service: string) => number;
  readonly portOf: (service: string) => number;
  readonly status: () => Promise<Status>;
  /** The history since a time (milliseconds since 1970), in order. */
  readonly since: (at: number) => Promise<readonly HistoryEntry[]>;
  readonly restart: (service: string) => Promise<void>;
  /** The alerts that the webhook received, "raised: …" or "resolved: …", in order. */
  readonly messages: readonly string[];
  readonly close: () => Promise<void>;
}

const DISK_MEGABYTES = 700;

export async function openFaultTestbed(
  checkTiming: CheckTiming,
  withDisk: boolean,
): Promise<FaultTestbed> {
  const stack = await prepareStack();
  const ownDisk = withDisk && mountSmallDisk(stack.home, DISK_MEGABYTES);
  const messages: string[] = [];
  const webhook = await startWebhook((text) => messages.push(text));
  const gatewayPort = Number(new URL(stack.gatewayUrl).port);
  const proxy = await startFaultProxy(gatewayPort);
  const config = join(stack.home, "supervisor-faults.yaml");
  const port = portOf(webhook);
  writeFileSync(config, buildConfig(checkTiming, proxy.url, stack.home));
  let closed = false;
  const close = async () => {
    if (closed) {
      return;
    }
    closed = true;
    await proxy.close();
    webhook.closeAllConnections();
    webhook.close();
    try {
      for (const { pid } of Object.values(stack.run().services)) {
        if (pid !== null) {
          resume(pid);
        }
      }
    } finally {
      await stack.remove().catch((error: unknown) => {
        // The mount point itself is busy until it is unmounted.
        if (!ownDisk) {
          throw error;
        }
      });
      if (ownDisk) {
        unmountDisk(stack.home);
      }
    }
  };
  const start = () =>
    stack.start({
      HEARTH_SUPERVISOR_CONFIG: config,
      ALERT_URL: `http://127.0.0.1:${port}/`,
    });
  try {
    await start();
  } catch (error) {
    await close();
    throw error;
  }
  const ask = async <T>(path: string, method: string = "GET"): Promise<T> =>
    (
      await fetch(`${stack.supervisorUrl}${path}`, {
        method,
        headers: stack.asOperator(),
      })
    ).json() as T;
  return {
    checkTiming,
    stack,
    startAgain: start,
    home: stack.home,
    ownDisk,
    proxy,
    pidOf: (service) => stack.run().services[service]?.pid ?? 0,
    portOf: (service) => stack.run().services[service]?.port ?? 0,
    status: () => ask<Status>("/api/status"),
    since: async (at) => {
      const path = "/api/history?limit=2000";
      const { entries } = await ask<{ entries: HistoryEntry[] }>(path);
      return entries.filter((entry) => entry.at >= at).toReversed();
    },
    restart: async (service) => {
      await ask(`/api/restart/${service}`, "POST");
    },
    messages,
    close,
  };
}

function buildConfig(
  checkTiming: CheckTiming,
  proxyUrl: string,
  home: string,
): string {
  const { every, timeout, ...heal } = checkTiming;
  const timing = { every, timeout };
  return JSON.stringify({
    checks: [
      {
        name: "gateway",
        kind: "http",
        url: `${proxyUrl}/health/liveliness`,
        expect: { within: "2s" },
        ...timing,
        heal: { restart: "gateway", per: "1h", ...heal },
      },
      {
        name: "gateway-ready",
        kind: "http",
        url: "${GATEWAY_URL}/health/readiness",
        expect: { json: { db: "connected" } },
        depends_on: ["gateway", "postgres"],
        ...timing,
      },
      { name: "notes", kind: "couchdb", url: "${NOTES_URL}", ...timing },
      {
        name: "postgres",
        kind: "postgres",
        url: "${SUPERVISOR_DATABASE_URL}",
        ...timing,
      },
      {
        name: "disk",
        kind: "disk",
        path: home,
        ...timing,
        expect: { free_above_percent: 5 },
      },
    ],
    notify: [{ kind: "webhook", url: "${ALERT_URL}" }],
  });
}

/** Starts the receiver of the webhook; calls `onText` with a line for each event. */
async function startWebhook(onText: (text: string) => void): Promise<Server> {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const { alarms } = JSON.parse(body) as {
        readonly alarms: readonly {
          readonly event: string;
          readonly text: string;
        }[];
      };
      for (const { event, text } of alarms) {
        onText(`${event}: ${text}`);
      }
      response.end();
    });
  });
  await listen(server);
  return server;
}

function resume(pid: number): void {
  try {
    process.kill(pid, "SIGCONT");
  } catch {
    // The process has ended.
  }
}
