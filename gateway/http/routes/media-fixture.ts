import OpenAI from "openai";
import { expect } from "vitest";
import {
  startTestbed,
  type Testbed,
  type TestGateway,
} from "../../../test/servers/gateway.ts";
import { silence } from "../../../test/servers/media.ts";
import type { MockInstructions } from "../../../test/servers/mock-instructions.ts";
import type { MockProvider } from "../../../test/servers/provider.ts";
import { query } from "../../database/pool.ts";

/** Dollars. */
export const PER_SECOND = 0.0001;
export const PER_CHARACTER = 0.000015;
export const PER_QUERY = 0.002;
export const PER_IMAGE = 0.04;
export const PER_IMAGE_TOKEN = 0.00004;

/** The configuration of a gateway with models of audio, images and rankings. */
export function mediaYaml(url: string): string {
  const alias = (name: string, params: string) => `
  - model_name: ${name}
    provider_params: { api_base: "${url}", api_key: provider-secret-key, local: false, max_retries: 0, ${params} }`;
  return `
model_list:${[
    alias(
      "by-second",
      `model: openai/ear, input_cost_per_second: ${PER_SECOND}`,
    ),
    alias(
      "by-token",
      "model: openai/ear-tokens, input_cost_per_token: 0.000001, input_cost_per_audio_token: 0.000003, output_cost_per_token: 0.000005",
    ),
    alias("unpriced", "model: openai/unknown-model"),
    alias(
      "voice",
      `model: openai/mouth, input_cost_per_character: ${PER_CHARACTER}`,
    ),
    alias(
      "voice-tokens",
      "model: openai/mouth-tokens, input_cost_per_token: 0.000001, output_cost_per_token: 0.00001",
    ),
    alias(
      "painter",
      `model: openai/painter, output_cost_per_image: ${PER_IMAGE}`,
    ),
    alias(
      "painter-tokens",
      `model: openai/painter-tokens, input_cost_per_token: 0, output_cost_per_token: ${PER_IMAGE_TOKEN}`,
    ),
    alias(
      "editor-tokens",
      `model: openai/editor-tokens, input_cost_per_token: 0, input_cost_per_image_token: ${PER_IMAGE_TOKEN}, output_cost_per_token: 0`,
    ),
    alias(
      "runner-rank",
      "model: hosted_vllm/rank, input_cost_per_token: 0.000001, output_cost_per_token: 0",
    ),
    alias(
      "voyage-rank",
      "model: voyage/rank, input_cost_per_token: 0.000001, output_cost_per_token: 0",
    ),
    alias(
      "tei-rank",
      "model: huggingface/rank, input_cost_per_token: 0.000001, output_cost_per_token: 0",
    ),
    alias(
      "cohere-rank",
      `model: cohere/rank, input_cost_per_query: ${PER_QUERY}`,
    ),
  ].join("")}
router_settings: { allowed_fails: 100000, num_retries: 0 }
general_settings: { max_request_size_mb: 1 }
`;
}

/** What instructs the mock provider, as a prompt, an input or a query. */
export function instruct(instructions: MockInstructions): string {
  return `[mock]${JSON.stringify(instructions)}`;
}

/** A WAV file with silence. */
export function recording(seconds: number): File {
  return new File([new Uint8Array(silence(seconds))], "speech.wav", {
    type: "audio/wav",
  });
}

type Row = Readonly<Record<string, unknown>> & {
  readonly metadata: Readonly<Record<string, unknown>> | null;
};

type Answer = Pick<Response, "headers">;

/** A gateway with models of audio, images and rankings. */
export class MediaFixture {
  readonly gateway: TestGateway;
  readonly provider: MockProvider;
  readonly #testbed: Testbed;

  constructor(testbed: Testbed) {
    this.gateway = testbed.gateway;
    this.provider = testbed.provider;
    this.#testbed = testbed;
  }

  stop(): Promise<void> {
    return this.#testbed.stop();
  }

  client(apiKey: string): OpenAI {
    const baseURL = `${this.gateway.url}/v1`;
    return new OpenAI({ apiKey, baseURL, maxRetries: 0 });
  }

  /** Posts a form; lists repeat their field. */
  async postForm(
    path: string,
    fields: Readonly<
      Record<string, string | File | readonly (string | File)[]>
    >,
    key: string,
  ): Promise<Response> {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) {
      for (const one of [value].flat()) {
        form.append(name, one);
      }
    }
    return fetch(this.gateway.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: form,
    });
  }

  /** The only row of a call in the ledger. */
  async rowOf({ headers }: Answer): Promise<Row> {
    await this.gateway.running.gateway.ledger.flush();
    const rows = await query<Row>(
      this.gateway.running.gateway.pool,
      "SELECT * FROM spend_log WHERE request_id = $1",
      [headers.get("x-hearth-call-id")],
    );
    expect(rows).toHaveLength(1);
    return rows[0] as Row;
  }

  /** The requests of a call that the provider got. */
  sentFor({ headers }: Answer) {
    const id = headers.get("x-hearth-call-id");
    return this.provider.requests.filter((request) => request.id === id);
  }

  async spendOf(key: string): Promise<number> {
    await this.gateway.running.gateway.ledger.flush();
    const info = await this.gateway.request("GET", "/key/info", undefined, key);
    return Number(info.json["info"]?.["spend"]);
  }
}

export async function startMediaFixture(): Promise<MediaFixture> {
  return new MediaFixture(await startTestbed(mediaYaml));
}
