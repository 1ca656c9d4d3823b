import { createServer, type ServerResponse } from "node:http";
import { listen } from "../servers/ports.ts";

/** A container of the small engine; omitted fields have the values of a healthy Hearth container. */
export interface SmallContainer {
  readonly id?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly restarts?: number;
  readonly state?: Readonly<Record<string, unknown>>;
}

/** An event as in `docker events`. */
interface SmallEvent {
  readonly container: string;
  readonly action: string;
  /** As in StartedAt. */
  readonly at: string;
  /** Id of the container; as in the containers if omitted. */
  readonly id?: string;
}

export interface SmallEngine {
  readonly dockerHost: string;
  /** By container name, such as hearth-gateway. */
  readonly containers: Map<string, SmallContainer>;
  readonly events: SmallEvent[];
  /** Received requests, such as "POST /containers/x/restart?t=15". */
  readonly requests: string[];
  /** hang: takes requests and never answers; refuse: 403 as the filtering proxy does. */
  mode: "answer" | "hang" | "refuse";
  /** The same for events only, as with a filtering proxy of an earlier release. */
  eventMode: "answer" | "refuse";
  /** A restart takes until this resolves. */
  stopped: Promise<void>;
  readonly close: () => Promise<void>;
}

/** Implements the part of Docker's API that the container runtime uses, with Docker's own response shapes, for tests without an engine. */
export async function startSmallEngine(): Promise<SmallEngine> {
  const containers = new Map<string, SmallContainer>();
  const events: SmallEvent[] = [];
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const url = request.url ?? "";
    requests.push(`${request.method} ${url}`);
    const mode =
      engine.mode === "answer" && url.startsWith("/events")
        ? engine.eventMode
        : engine.mode;
    if (mode === "hang") {
      return;
    }
    if (mode === "refuse") {
      return void response.writeHead(403).end();
    }
    answer(response, new URL(url, "http://engine"));
  });
  const port = await listen(server);

  function answer(
    response: ServerResponse,
    { pathname, searchParams }: URL,
  ): void {
    if (pathname === "/containers/json") {
      return json(
        response,
        [...containers.keys()].map((name) => ({ Names: [`/${name}`] })),
      );
    }
    if (pathname === "/events") {
      return void response.end(listEvents(events, searchParams));
    }
    const [, name = "", verb] =
      /^\/containers\/([^/]+)\/(\w+)$/.exec(pathname) ?? [];
    const container = containers.get(name);
    if (container === undefined) {
      return json(response, { message: `No such container: ${name}` }, 404);
    }
    switch (verb) {
      case "json":
        return json(response, inspected(name, container));
      case "stats":
        return json(response, {
          memory_stats: {
            usage: 50_000_000,
            limit: 100_000_000,
            stats: { inactive_file: 10_000_000 },
          },
          cpu_stats: { cpu_usage: { total_usage: 2_500_000_000 } },
        });
      case "logs":
        response.end(
          Buffer.concat([
            frame(1, Buffer.from("one\n")),
            // A character cut between two frames.
            frame(2, Buffer.from("gr\u00fc\u00df\n").subarray(0, 3)),
            frame(2, Buffer.from("gr\u00fc\u00df\n").subarray(3)),
          ]),
        );
        return;
      case "restart":
        void engine.stopped.then(() => {
          containers.set(name, {
            ...container,
            state: { StartedAt: new Date().toISOString() },
          });
          response.writeHead(204).end();
        });
        return;
      default:
        response.writeHead(403).end();
    }
  }

  const engine: SmallEngine = {
    dockerHost: `tcp://127.0.0.1:${port}`,
    containers,
    events,
    requests,
    mode: "answer",
    eventMode: "answer",
    stopped: Promise.resolve(),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return engine;
}

/** Past events as the engine lists them: one JSON object a line, of all containers whose name begins like the filter's. */
function listEvents(
  events: readonly SmallEvent[],
  query: URLSearchParams,
): string {
  const since = Number(query.get("since")) * 1000;
  const until = Number(query.get("until")) * 1000;
  const filters = JSON.parse(query.get("filters") ?? "") as {
    readonly container: readonly string[];
    readonly event: readonly string[];
  };
  return events
    .filter(
      ({ container, action, at }) =>
        filters.container.some((name) => container.startsWith(name)) &&
        filters.event.includes(action) &&
        Date.parse(at) >= since &&
        Date.parse(at) <= until,
    )
    .map(({ container, action, at, id = `id-of-${container}` }) =>
      JSON.stringify({
        status: action,
        id,
        Type: "container",
        Action: action,
        Actor: { ID: id, Attributes: { name: container } },
        scope: "local",
        time: Math.floor(Date.parse(at) / 1000),
      }),
    )
    .map((line) => `${line}\n`)
    .join("");
}

/** `docker inspect`'s answer for a healthy container, with changes. */
export function inspected(name: string, container: SmallContainer): object {
  return {
    Id: container.id ?? `id-of-${name}`,
    Name: `/${name}`,
    RestartCount: container.restarts ?? 0,
    Config: {
      Image: "sha256:image",
      Labels: container.labels ?? { "hearth.config": "0123456789abcdef" },
    },
    State: {
      Status: "running",
      Pid: 4711,
      ExitCode: 0,
      OOMKilled: false,
      Error: "",
      StartedAt: "2026-01-02T03:04:05.678901234Z",
      FinishedAt: "0001-01-01T00:00:00Z",
      Health: {
        Status: "healthy",
        Log: [{ ExitCode: 0, Output: "ok" }],
      },
      ...container.state,
    },
    NetworkSettings: {
      Ports: {
        "9/tcp": null,
        "4001/tcp": [{ HostIp: "10.8.0.1", HostPort: "4001" }],
      },
    },
  };
}

function frame(stream: number, text: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(text.length, 4);
  return Buffer.concat([header, text]);
}

function json(response: ServerResponse, body: unknown, status = 200): void {
  response
    .writeHead(status, { "content-type": "application/json" })
    .end(JSON.stringify(body));
}
