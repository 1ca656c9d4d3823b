import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { RunnerKind } from "../../gateway/runners/runner-state.ts";

/** A request that a runner received. */
interface RunnerRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly authorization: string | undefined;
}

const USAGE = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };

/**
 * A local runner over HTTP, in the wire format of its kind: Ollama 0.11, LM Studio 0.4, llama.cpp's llama-server, vLLM 0.10. It
 * loads one model at a time when that is called (llama.cpp when it starts), and holds calls and loads for the test.
 */
export class RunnerDouble {
  readonly kind: RunnerKind;
  readonly models: readonly string[];
  /** Of models; of llama.cpp "" is its only one. */
  readonly loaded = new Set<string>();
  /** Of llama.cpp. */
  isLoading = false;
  slots = 1;
  /** Calls to models and requests to load them. */
  readonly requests: RunnerRequest[] = [];
  /** Calls that run now, and the most at once. */
  running = 0;
  mostRunning = 0;
  /** Loads wait until the test ends them. */
  holdsLoads = false;
  /** Calls wait until the test answers them. */
  holdsCalls = false;
  /** The only one that it accepts; null: it asks for none. */
  key: string | null = null;
  /** What a load ends with instead of the model. */
  loadError: string | null = null;
  readonly #held: (() => void)[] = [];
  readonly #server: Server;
  #port = 0;

  constructor(kind: RunnerKind, models: readonly string[]) {
    this.kind = kind;
    this.models = models;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<this> {
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  /** Refuses connections until it is started again, at the same address. */
  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** Held calls and loads. */
  get held(): number {
    return this.#held.length;
  }

  /** Continues the one that is held for longest. */
  continueOne(): void {
    this.#held.shift()?.();
  }

  /** Holds nothing any more. */
  continueAll(): void {
    this.holdsLoads = false;
    this.holdsCalls = false;
    for (const go of this.#held.splice(0)) {
      go();
    }
  }

  async #serve(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    let text = "";
    for await (const part of request) {
      text += String(part);
    }
    const path = request.url ?? "";
    const body = (text === "" ? {} : JSON.parse(text)) as RunnerRequest["body"];
    if (request.method === "POST") {
      const { authorization } = request.headers;
      this.requests.push({ path, body, authorization });
    }
    if (
      this.key !== null &&
      request.headers.authorization !== `Bearer ${this.key}`
    ) {
      send(response, 401, { error: "Unauthorized" });
      return;
    }
    if (this.kind === "llama_cpp" && this.isLoading) {
      const error = {
        code: 503,
        message: "Loading model",
        type: "unavailable_error",
      };
      send(response, 503, { error });
      return;
    }
    if (path === "/v1/chat/completions") {
      await this.#chat(response, body);
      return;
    }
    switch (this.kind) {
      case "ollama":
        return this.#ollama(response, path, body);
      case "lm_studio":
        return this.#lmStudio(response, request, body);
      case "llama_cpp":
        return this.#llamaCpp(response, path);
      case "vllm":
        return this.#vllm(response, path);
    }
  }

  async #ollama(
    response: ServerResponse,
    path: string,
    body: RunnerRequest["body"],
  ): Promise<void> {
    const rows = (names: Iterable<string>) =>
      [...names].map((model) => ({
        name: model,
        model,
        size: 2_019_393_189,
        digest: "a80c4f17acd5",
        details: { format: "gguf", family: "llama" },
      }));
    switch (path) {
      case "/api/version":
        return send(response, 200, { version: "0.11.10" });
      case "/api/tags":
        return send(response, 200, { models: rows(this.models) });
      case "/api/ps":
        return send(response, 200, { models: rows(this.loaded) });
      case "/v1/models":
        return send(response, 200, listOf(this.models));
      case "/api/generate":
        if (!(await this.#load(this.#named(body)))) {
          return send(response, 500, { error: this.loadError });
        }
        return send(response, 200, {
          model: body["model"],
          created_at: "2026-01-01T00:00:00Z",
          response: "",
          done: true,
          done_reason: "load",
        });
      default:
        response.writeHead(404).end("404 page not found");
    }
  }

  async #lmStudio(
    response: ServerResponse,
    { url: path = "", method = "" }: IncomingMessage,
    body: RunnerRequest["body"],
  ): Promise<void> {
    switch (path) {
      case "/api/v0/models":
        return send(response, 200, {
          object: "list",
          data: this.models.map((id) => ({
            id,
            object: "model",
            type: "llm",
            publisher: "lmstudio-community",
            arch: "qwen2",
            compatibility_type: "gguf",
            quantization: "4bit",
            state: this.loaded.has(id) ? "loaded" : "not-loaded",
            max_context_length: 32_768,
          })),
        });
      case "/v1/models":
        return send(response, 200, listOf(this.models));
      case "/api/v1/models/load":
        await this.#load(this.#named(body));
        return send(response, 200, {
          model_instance_id: body["model"],
          config: { context_length: 4_096 },
          load_time_seconds: 9.099,
        });
      default:
        // Every other path, with status 200.
        return send(response, 200, {
          error: `Unexpected endpoint or method. (${method} ${path})`,
        });
    }
  }

  #llamaCpp(response: ServerResponse, path: string): void {
    switch (path) {
      case "/health":
        return send(response, 200, { status: "ok" });
      case "/props":
        return send(response, 200, {
          default_generation_settings: { id: 0, n_ctx: 1_024 },
          total_slots: this.slots,
          model_path: "../models/model.gguf",
          chat_template: "…",
          is_sleeping: false,
        });
      case "/v1/models":
        return send(response, 200, listOf(["../models/model.gguf"]));
      case "/slots":
        return send(
          response,
          200,
          Array.from({ length: this.slots }, (_, id) => ({
            id,
            is_processing: id < this.running,
          })),
        );
      default:
        return send(response, 404, {
          error: {
            code: 404,
            message: "File Not Found",
            type: "not_found_error",
          },
        });
    }
  }

  #vllm(response: ServerResponse, path: string): void {
    switch (path) {
      case "/health":
        response.writeHead(200).end();
        return;
      case "/version":
        return send(response, 200, { version: "0.10.2" });
      case "/v1/models":
        return send(response, 200, {
          object: "list",
          data: this.models.map((id) => ({
            id,
            object: "model",
            created: 1_760_000_000,
            owned_by: "vllm",
            root: id,
            parent: null,
            max_model_len: 32_768,
          })),
        });
      default:
        return send(response, 404, { detail: "Not Found" });
    }
  }

  /** The model that a request names; Ollama's `llama3.2` is `llama3.2:latest`. */
  #named({ model }: RunnerRequest["body"]): string {
    const name = String(model);
    return this.kind === "ollama" && !name.includes(":")
      ? `${name}:latest`
      : name;
  }

  /** Loads a model unless it is; false: it could not be loaded. */
  async #load(model: string): Promise<boolean> {
    if (this.loaded.has(model)) {
      return true;
    }
    if (this.holdsLoads) {
      await this.#hold();
    }
    if (this.loadError !== null) {
      return false;
    }
    this.loaded.add(model);
    return true;
  }

  #hold(): Promise<void> {
    return new Promise((resolve) => this.#held.push(resolve));
  }

  async #chat(
    response: ServerResponse,
    body: RunnerRequest["body"],
  ): Promise<void> {
    this.running++;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    response.once("close", () => this.running--);
    // llama.cpp has loaded its model at its start, vLLM all of them.
    if (
      (this.kind === "ollama" || this.kind === "lm_studio") &&
      !(await this.#load(this.#named(body)))
    ) {
      send(response, 500, { error: this.loadError });
      return;
    }
    if (this.holdsCalls) {
      await this.#hold();
    }
    if (response.destroyed) {
      return;
    }
    const head = { id: "chatcmpl-1", created: 1, model: body["model"] };
    if (body["stream"] === true) {
      const chunk = (choices: readonly object[], more = {}) =>
        `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices, ...more })}\n\n`;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(chunk([{ index: 0, delta: { content: this.kind } }]));
      response.write(
        chunk([{ index: 0, delta: {}, finish_reason: "stop" }]) +
          chunk([], { usage: USAGE }),
      );
      response.end("data: [DONE]\n\n");
      return;
    }
    const message = { role: "assistant", content: this.kind };
    send(response, 200, {
      ...head,
      object: "chat.completion",
      choices: [{ index: 0, message, finish_reason: "stop" }],
      usage: USAGE,
    });
  }
}

/** OpenAI's list of models. */
function listOf(models: readonly string[]): object {
  return {
    object: "list",
    data: models.map((id) => ({ id, object: "model", owned_by: "library" })),
  };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response
    .writeHead(status, { "content-type": "application/json" })
    .end(JSON.stringify(body));
}
