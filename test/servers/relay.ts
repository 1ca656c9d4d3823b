import { once } from "node:events";
import { createConnection, createServer, type Socket } from "node:net";
import { listen } from "./ports.ts";

/** One whole message on the wire. */
export interface Frame {
  readonly length: number;
  /** The name of the point that it marks, if campaigns can wait for it. */
  readonly point: string | null;
  /** The number of responses it causes. */
  readonly answers: number;
}

/** Splits the stream of one connection into messages; null while a message is incomplete. */
export interface Wire {
  nextRequest(bytes: Buffer): Frame | null;
  /** `ends`: whether it is the last message of a response. */
  nextAnswer(
    bytes: Buffer,
  ): { readonly length: number; readonly ends: boolean } | null;
}

/** `before`: the request has arrived but is not forwarded yet. `after`: its response has arrived but is not forwarded yet. */
export type RelayMoment = `${"before" | "after"} ${string}`;

/** A TCP relay in front of a server that recognises messages and can cut, stall and slow connections. */
export interface Relay {
  readonly port: number;
  /** Calls `act` at the count-th such moment from now, and forwards nothing more on that connection. */
  at(moment: RelayMoment, count: number, act: () => void): void;
  disarm(): void;
  /** Closes all connections and refuses new ones until `restore`. */
  cut(): void;
  /** Keeps connections open but forwards nothing until `restore`. */
  stall(): void;
  /** Delays all data. */
  slow(ms: number): void;
  restore(): void;
  /** New connections lead to another server; open ones stay. */
  retarget(port: number): void;
  close(): Promise<void>;
}

/** Delayed data, and when to forward it (ms since 1970). */
interface DelayedChunk {
  readonly bytes: Buffer;
  readonly at: number;
}

type Mode =
  | { readonly kind: "open" }
  | { readonly kind: "cut" }
  | { readonly kind: "stalled" }
  | { readonly kind: "slow" };

export async function startRelay(
  targetPort: number,
  wire: () => Wire,
): Promise<Relay> {
  let target = targetPort;
  const sockets = new Set<Socket>();
  const waiting: { readonly to: Socket; readonly bytes: Buffer }[] = [];
  /** Delayed data of each socket; later data must not overtake it. */
  const delayed = new WeakMap<Socket, DelayedChunk[]>();
  let slowMs = 0;
  let mode: Mode = { kind: "open" };
  let armed: { moment: RelayMoment; count: number; act: () => void } | null =
    null;

  const server = createServer((client) => {
    if (mode.kind === "cut") {
      return void client.resetAndDestroy();
    }
    connect(client);
  });

  /** True at the awaited moment, after which nothing more is forwarded on this connection. */
  function reached(moment: RelayMoment): boolean {
    if (armed === null || armed.moment !== moment || --armed.count > 0) {
      return false;
    }
    const { act } = armed;
    armed = null;
    act();
    return true;
  }

  function forward(to: Socket, bytes: Buffer): void {
    if (bytes.length === 0) {
      return;
    }
    switch (mode.kind) {
      case "open":
        return (delayed.get(to)?.length ?? 0) > 0
          ? forwardDelayed(to, bytes)
          : send(to, bytes);
      case "slow":
        return forwardDelayed(to, bytes);
      case "stalled":
        return void waiting.push({ to, bytes });
      case "cut":
    }
  }

  /** Keeps the order even if the delay changes. */
  function forwardDelayed(to: Socket, bytes: Buffer): void {
    const queue = delayed.get(to) ?? [];
    delayed.set(to, queue);
    const after = queue.at(-1)?.at ?? 0;
    queue.push({ bytes, at: Math.max(Date.now() + slowMs, after) });
    if (queue.length === 1) {
      sendLater(to, queue);
    }
  }

  function sendLater(to: Socket, queue: DelayedChunk[]): void {
    const [next] = queue;
    if (next === undefined) {
      return;
    }
    setTimeout(
      () => {
        queue.shift();
        send(to, next.bytes);
        sendLater(to, queue);
      },
      Math.max(0, next.at - Date.now()),
    );
  }

  function send(to: Socket, bytes: Buffer): void {
    if (to.writable) {
      to.write(bytes);
    }
  }

  function connect(client: Socket): void {
    const upstream = createConnection({ host: "127.0.0.1", port: target });
    const frames = wire();
    /** The point of the request of each pending response. */
    const pending: (string | null)[] = [];
    let dead = false;
    let point: string | null = null;
    let requests: Buffer = Buffer.alloc(0);
    let answers: Buffer = Buffer.alloc(0);

    client.on("data", (chunk) => {
      if (dead) {
        return;
      }
      requests = Buffer.concat([requests, chunk]);
      for (let from = 0; ;) {
        const frame = frames.nextRequest(requests.subarray(from));
        if (frame === null) {
          forward(upstream, requests.subarray(0, from));
          requests = requests.subarray(from);
          return;
        }
        if (frame.point !== null && reached(`before ${frame.point}`)) {
          forward(upstream, requests.subarray(0, from));
          dead = true;
          return;
        }
        from += frame.length;
        point = frame.point ?? point;
        if (frame.answers > 0) {
          pending.push(point);
          point = null;
        }
      }
    });
    upstream.on("data", (chunk) => {
      if (dead) {
        return;
      }
      answers = Buffer.concat([answers, chunk]);
      for (let from = 0; ;) {
        const frame = frames.nextAnswer(answers.subarray(from));
        if (frame === null) {
          forward(client, answers.subarray(0, from));
          answers = answers.subarray(from);
          return;
        }
        if (frame.ends) {
          const answered = pending.shift() ?? null;
          if (answered !== null && reached(`after ${answered}`)) {
            forward(client, answers.subarray(0, from));
            dead = true;
            return;
          }
        }
        from += frame.length;
      }
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.setNoDelay(true);
      one.on("error", () => undefined);
      one.on("close", () => {
        sockets.delete(one);
        if (one.readableEnded) {
          other.end();
        } else {
          other.destroy();
        }
      });
    }
  }

  const port = await listen(server);

  function release(): void {
    mode = { kind: "open" };
    for (const { to, bytes } of waiting.splice(0)) {
      forward(to, bytes);
    }
  }

  return {
    port,
    at(moment, count, act) {
      armed = { moment, count, act };
    },
    disarm() {
      armed = null;
    },
    cut() {
      mode = { kind: "cut" };
      waiting.length = 0;
      for (const socket of sockets) {
        socket.destroy();
      }
    },
    stall() {
      mode = { kind: "stalled" };
    },
    slow(ms) {
      slowMs = ms;
      mode = { kind: "slow" };
    },
    restore: release,
    retarget(port) {
      target = port;
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) {
        socket.destroy();
      }
      await closed;
    },
  };
}
