import { Agent, request } from "node:http";
import { inWords } from "../../../core/duration.ts";
import { Failure, textOf } from "../../../core/failure.ts";

export interface EngineAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/** Sends requests to a Docker engine, through the filtering socket proxy. Throws a Failure with the address. */
export interface Engine {
  readonly address: string;
  readonly ask: (
    method: "GET" | "POST",
    path: string,
    withinMs: number,
  ) => Promise<EngineAnswer>;
  readonly close: () => void;
}

/** More than logs of 5000 long lines; an endless stream is truncated. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * `dockerHost` as in DOCKER_HOST: tcp://HOST:PORT or unix:///PATH; `gate` is the container of the filtering proxy. Plain HTTP: the dockerode package does the same with 34 MB of
 * memory (measured; it depends on gRPC), a third of the supervisor's budget.
 */
export function openEngine(dockerHost: string, gate: string): Engine {
  const place = placeOf(dockerHost);
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });

  function ask(
    method: "GET" | "POST",
    path: string,
    withinMs: number,
  ): Promise<EngineAnswer> {
    return new Promise((resolve, reject) => {
      const refuse = (error: unknown) =>
        reject(
          new Failure(
            `Docker at ${dockerHost} does not answer (${deadline.aborted ? `no answer within ${inWords(withinMs)}` : textOf(error)}): run \`docker logs ${gate}\` on this host.`,
            error,
          ),
        );
      const deadline = AbortSignal.timeout(withinMs);
      const pending = request(
        { ...place, agent, method, path, signal: deadline },
        (answer) => {
          const chunks: Buffer[] = [];
          let size = 0;
          answer.on("data", (chunk: Buffer) => {
            chunks.push(chunk);
            size += chunk.length;
            if (size > MAX_ANSWER_BYTES) {
              answer.destroy(new Error("the answer is too long"));
            }
          });
          answer.on("error", refuse);
          answer.on("end", () =>
            resolve({
              status: answer.statusCode ?? 0,
              body: Buffer.concat(chunks),
            }),
          );
        },
      );
      pending.on("error", refuse);
      pending.end();
    });
  }

  return { address: dockerHost, ask, close: () => agent.destroy() };
}

function placeOf(dockerHost: string) {
  const tcp = /^tcp:\/\/(\[[^\]]+\]|[^:/]+):(\d+)$/.exec(dockerHost);
  if (tcp?.[1] !== undefined) {
    return { host: tcp[1].replace(/[[\]]/g, ""), port: Number(tcp[2]) };
  }
  if (dockerHost.startsWith("unix:///")) {
    return { socketPath: dockerHost.slice("unix://".length) };
  }
  throw new Failure(
    `DOCKER_HOST is "${dockerHost}": it must be tcp://HOST:PORT or unix:///PATH.`,
  );
}
