import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  startStand,
  type Stand,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { query } from "../db/pool.ts";

let stand: Stand;
let gateway: TestGateway;

const models = `
  - model_name: whisper
    provider_params: { model: openai/whisper-1, api_key: x }
`;

beforeAll(async () => {
  stand = await startStand((url) => modelYaml(url, models));
  ({ gateway } = stand);
});

afterAll(() => stand?.stop());

interface Row {
  readonly status: string;
  readonly spend: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly unpriced: boolean;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

async function rowOf(callId: string | null): Promise<Row> {
  const { ledger, pool } = gateway.running.gateway;
  let row: Row | undefined;
  await expect
    .poll(
      async () => {
        await ledger.flush();
        [row] = await query<Row>(
          pool,
          "SELECT * FROM spend_log WHERE request_id = $1",
          [callId],
        );
        return row;
      },
      { timeout: 20_000 },
    )
    .toBeDefined();
  if (row === undefined) throw new Error("no row");
  return { ...row, spend: Number(row.spend) };
}

test("what has no price of its own is marked in the row", async () => {
  const key = await gateway.makeKey();
  const flex = await gateway.chat(key, '[mock]{"usage":null}', {
    service_tier: "flex",
  });
  const row = await rowOf(flex.headers.get("x-hearth-call-id"));
  expect(row.spend).toBeGreaterThan(0);
  expect(row).toMatchObject({
    unpriced: false,
    metadata: { unpriced_parts: ["service_tier=flex"] },
  });
});

test("a model that is sold by the hour of audio is shown as unpriced", async () => {
  const info = await gateway.request("GET", "/model/info");
  const models = info.json["data"] as unknown as readonly {
    readonly model_name: string;
    readonly model_info: { readonly input_cost_per_token: number | null };
  }[];
  expect(
    models.find(({ model_name }) => model_name === "whisper")?.model_info
      .input_cost_per_token,
  ).toBeNull();
});

