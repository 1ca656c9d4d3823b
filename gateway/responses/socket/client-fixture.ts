import { once } from "node:events";
import { WebSocket, type ClientOptions } from "ws";

type ServerEvent = Readonly<Record<string, unknown>>;

const LAST = [
  "response.completed",
  "response.incomplete",
  "response.failed",
  "error",
];

/** A client of the Responses API over a WebSocket. */
export class SocketClient {
  /** The code with which it was closed. */
  readonly closed: Promise<number>;
  readonly #socket: WebSocket;
  /** Received and not taken yet. */
  readonly #events: ServerEvent[] = [];
  #arrived = Promise.withResolvers<null>();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    this.closed = once(socket, "close").then(([code]) => code as number);
    socket.on("error", () => undefined);
    socket.on("message", (data: Buffer) => {
      this.#events.push(JSON.parse(data.toString("utf8")) as ServerEvent);
      this.#arrived.resolve(null);
    });
    void this.closed.then(() => this.#arrived.resolve(null));
  }

  static async connect(
    url: string,
    key: string,
    { headers, ...options }: ClientOptions = {},
  ): Promise<SocketClient> {
    const socket = new WebSocket(`${url.replace("http", "ws")}/v1/responses`, {
      headers: { authorization: `Bearer ${key}`, ...headers },
      ...options,
    });
    const client = new SocketClient(socket);
    await once(socket, "open");
    return client;
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  sendText(message: string | Buffer): void {
    this.#socket.send(message);
  }

  /** Sends the first part of a message. */
  sendPart(part: string): void {
    this.#socket.send(part, { fin: false });
  }

  /** Sends a ping and awaits its answer. */
  async ping(data: string): Promise<void> {
    const answer = once(this.#socket, "pong");
    this.#socket.ping(data);
    await answer;
  }

  /** Sends a call. */
  send(body: object): void {
    this.sendText(JSON.stringify({ type: "response.create", ...body }));
  }

  /** Sends a call and awaits its events, the last one included. */
  async create(
    body: Readonly<Record<string, unknown>>,
  ): Promise<readonly ServerEvent[]> {
    this.send(body);
    const { stream_id: stream } = body;
    const events: ServerEvent[] = [];
    do {
      events.push(await this.#take((event) => event["stream_id"] === stream));
    } while (!LAST.includes(String(events.at(-1)?.["type"])));
    return events;
  }

  /** The next event of a type, and of a stream. Those before it are dropped. */
  async until(type: string, stream?: string): Promise<ServerEvent> {
    for (;;) {
      const event = await this.#take(
        ({ stream_id }) => stream === undefined || stream_id === stream,
      );
      if (event["type"] === type) {
        return event;
      }
    }
  }

  pauseReading(): void {
    this.#socket.pause();
  }

  close(): void {
    this.#socket.close();
  }

  async #take(isWanted: (event: ServerEvent) => boolean): Promise<ServerEvent> {
    for (;;) {
      const at = this.#events.findIndex(isWanted);
      const [event] = at === -1 ? [] : this.#events.splice(at, 1);
      if (event !== undefined) {
        return event;
      }
      if (!this.isOpen) {
        throw new Error(`closed with ${await this.closed}`);
      }
      this.#arrived = Promise.withResolvers<null>();
      await this.#arrived.promise;
    }
  }
}
