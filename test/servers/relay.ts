import { once } from "node:events";
import {
  createConnection,
  createServer,
  type AddressInfo,
  type Socket,
} from "node:net";

/** One whole message on the wire. */
export interface Frame {
  readonly length: number;
  /** Its name when it is one that campaigns wait for. */
  readonly point: string | null;
  /** How many answers it asks for. */
  readonly answers: number;
}

/** How a protocol is cut into messages; one for each connection. null: not all of the message is there yet. */
export interface Wire {
  nextRequest(bytes: Buffer): Frame | null;
  /** `ends`: it is the last message of an answer. */
  nextAnswer(
    bytes: Buffer,
  ): { readonly length: number; readonly ends: boolean } | null;
}

/** `before`: the request has not been passed on. `after`: its answer is here and has not been passed on. */
export type RelayMoment = `${"before" | "after"} ${string}`;

/** A TCP relay before a server: what passes can be recognised, and the way can be cut, stalled and slowed. */
export interface Relay {
  readonly port: number;
  /** Calls `act` at the count-th such moment from now, and drops what was about to pass on that connection. */
  at(moment: RelayMoment, count: number, act: () => void): void;
  disarm(): void;
  /** Ends all connections and refuses new ones, until `restore`. */
  cut(): void;
  /** Connections stay and nothing passes, until `restore`. */
  stall(): void;
  /** Everything passes this much later. */
  slow(ms: number): void;
  restore(): void;
  close(): Promise<void>;
}

/** A piece of a connection, and when it may go on (ms since the epoch). */
interface Late {
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
  const sockets = new Set<Socket>();
  const waiting: { readonly to: Socket; readonly bytes: Buffer }[] = [];
  /** Pieces on their slow way, for each socket: later ones must not overtake them. */
  const late = new WeakMap<Socket, Late[]>();
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

  /** True when the moment was the awaited one: nothing more shall pass on this connection. */
  function reached(moment: RelayMoment): boolean {
    if (armed === null || armed.moment !== moment || --armed.count > 0) {
      return false;
    }
    const { act } = armed;
    armed = null;
    act();
    return true;
  }

  function pass(to: Socket, bytes: Buffer): void {
    if (bytes.length === 0) {
      return;
    }
    switch (mode.kind) {
      case "open":
        return (late.get(to)?.length ?? 0) > 0
          ? passLate(to, bytes)
          : send(to, bytes);
      case "slow":
        return passLate(to, bytes);
      case "stalled":
        return void waiting.push({ to, bytes });
      case "cut":
    }
  }

  /** In order, however the slowness changes meanwhile. */
  function passLate(to: Socket, bytes: Buffer): void {
    const queue = late.get(to) ?? [];
    late.set(to, queue);
    const after = queue.at(-1)?.at ?? 0;
    queue.push({ bytes, at: Math.max(Date.now() + slowMs, after) });
    if (queue.length === 1) {
      sendLater(to, queue);
    }
  }

  function sendLater(to: Socket, queue: Late[]): void {
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
    const upstream = createConnection({ host: "127.0.0.1", port: targetPort });
    const frames = wire();
    /** For each answer that is due, the point that asked for it. */
    const due: (string | null)[] = [];
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
          pass(upstream, requests.subarray(0, from));
          requests = requests.subarray(from);
          return;
        }
        if (frame.point !== null && reached(`before ${frame.point}`)) {
          pass(upstream, requests.subarray(0, from));
          dead = true;
          return;
        }
        from += frame.length;
        point = frame.point ?? point;
        if (frame.answers > 0) {
          due.push(point);
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
          pass(client, answers.subarray(0, from));
          answers = answers.subarray(from);
          return;
        }
        if (frame.ends) {
          const asked = due.shift() ?? null;
          if (asked !== null && reached(`after ${asked}`)) {
            pass(client, answers.subarray(0, from));
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

  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  function release(): void {
    mode = { kind: "open" };
    for (const { to, bytes } of waiting.splice(0)) {
      pass(to, bytes);
    }
  }

  return {
    port: (server.address() as AddressInfo).port,
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
