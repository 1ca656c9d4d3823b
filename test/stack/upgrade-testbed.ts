import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  startProviderProcess,
  type ProviderProcess,
} from "../servers/provider-process.ts";
import type { Checkout } from "./checkout.ts";
import { prepareStack, type Stack } from "./stack.ts";

/** A stack started from a checkout, with a model `mock`. */
export interface UpgradeTestbed {
  readonly stack: Stack;
  readonly hearth: (
    ...words: readonly string[]
  ) => ReturnType<Checkout["hearth"]>;
  readonly status: () => Promise<TestbedStatus>;
  readonly releaseRunning: () => Promise<string>;
  readonly pidOf: (name: string) => Promise<number>;
  /** Calls in eight loops until stopped; returns the number of calls and the failures. */
  readonly keepCalling: (key?: string) => () => Promise<{
    readonly calls: number;
    readonly failed: readonly string[];
  }>;
  readonly ledgerCalls: () => Promise<number>;
  readonly remove: () => Promise<void>;
}

interface TestbedStatus {
  readonly ok: boolean;
  readonly supervisor: { readonly pid: number; readonly release: string };
  readonly services: readonly {
    readonly name: string;
    readonly pid: number;
    readonly state: string;
  }[];
}

/** Starts the stack as `npm start -- --detach` does. */
export async function startUpgradeTestbed(
  checkout: Checkout,
): Promise<UpgradeTestbed> {
  const provider: ProviderProcess = await startProviderProcess({ quiet: true });
  writeFileSync(
    join(checkout.path, "config", "gateway.local.yaml"),
    `model_list:
  - model_name: mock
    provider_params: { model: openai/mock, api_base: ${provider.url}, api_key: x, input_cost_per_token: 0.000001, output_cost_per_token: 0.000001 }
`,
  );
  const stack = await prepareStack();
  const hearth = (...words: readonly string[]) =>
    checkout.hearth(stack.env, ...words);
  const remove = async () => {
    await hearth("down");
    await provider.stop();
    await stack.remove();
    checkout.remove();
  };
  const up = await hearth("up", "--detach");
  if (up.code !== 0) {
    await remove();
    throw new Error(`the stack did not start: ${up.output}`);
  }

  /** What `hearth status --json` prints. */
  async function status(): Promise<TestbedStatus> {
    const answer = await fetch(`${stack.supervisorUrl}/api/status`, {
      headers: stack.asOperator(),
    });
    return (await answer.json()) as TestbedStatus;
  }

  async function releaseRunning(): Promise<string> {
    return (await status()).supervisor.release;
  }

  async function pidOf(name: string): Promise<number> {
    const { services } = await status();
    return services.find((service) => service.name === name)?.pid ?? 0;
  }

  function keepCalling(key = stack.secrets()["masterKey"]) {
    let stopped = false;
    let calls = 0;
    const failed: string[] = [];
    const loop = async () => {
      while (!stopped) {
        calls += 1;
        const outcome = await fetch(`${stack.gatewayUrl}/v1/chat/completions`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${key}`,
            "content-type": "application/json",
          },
          body: JSON.stringify({
            model: "mock",
            messages: [{ role: "user", content: "Hello" }],
          }),
        }).then(
          async (answer) => `${answer.status} ${await answer.text()}`,
          (error: Error) => String(error.cause ?? error),
        );
        if (!outcome.startsWith("200 ")) {
          failed.push(outcome.slice(0, 200));
        }
        await sleep(20);
      }
    };
    const loops = Promise.all(Array.from({ length: 8 }, loop));
    return async () => {
      stopped = true;
      await loops;
      return { calls, failed };
    };
  }

  async function ledgerCalls(): Promise<number> {
    const [row] = await stack.ledger<{ count: string }>(
      "SELECT count(*)::text AS count FROM spend_log",
    );
    return Number(row?.count);
  }

  return {
    stack,
    hearth,
    status,
    releaseRunning,
    pidOf,
    keepCalling,
    ledgerCalls,
    remove,
  };
}
