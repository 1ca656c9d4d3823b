import { join } from "node:path";
import { stringify } from "yaml";
import { answersOk } from "../supervisor/checks/http-get.ts";
import { writeIfChanged } from "../core/durable-file.ts";
import { needFreePort } from "../supervisor/runtimes/process/ports.ts";
import type { ServiceSpec } from "../supervisor/runtimes/process/service-spec.ts";
import type { Home } from "../supervisor/home/home.ts";
import { explainHearth, plainEnvironment } from "./node-program.ts";

export const ECHO_ALIAS = "hearth-echo";

/** The echo: a substitute for a model, so that a first call works on any machine. */
export function echoService(home: Home, port: number): ServiceSpec {
  const address = `http://127.0.0.1:${port}`;
  return {
    name: "echo",
    address,
    port,
    needs: [],
    uses: [],
    prepare: () => needFreePort(port, "echo", undefined),
    plan: () => ({
      file: process.execPath,
      args: [
        join(home.project, "embedded", "echo", "main.ts"),
        "--port",
        String(port),
        "--record",
        join(home.logs, "echo-calls.jsonl"),
      ],
      cwd: home.checkout,
      env: plainEnvironment(home),
    }),
    probe: (signal) => answersOk(`${address}/v1/models`, signal),
    afterUp: async () => {},
    startWithinMs: 20_000,
    stopSignal: "SIGTERM",
    stopWithinMs: 10_000,
    haltSignal: "SIGKILL",
    explain: explainHearth,
  };
}

/** The echo's alias, which the gateway reads in addition to its configuration. It has invented prices, so that budgets can be tried. */
export function writeEchoConfig(home: Home, port: number | undefined): void {
  const models =
    port === undefined
      ? []
      : [
          {
            model_name: ECHO_ALIAS,
            provider_params: {
              model: `openai/${ECHO_ALIAS}`,
              api_base: `http://127.0.0.1:${port}/v1`,
              api_key: "sk-echo",
              input_cost_per_token: 0.000001,
              output_cost_per_token: 0.000002,
            },
            // The echo supports only chat; the gateway translates.
            model_info: { mode: "chat", supports_responses: false },
          },
        ];
  writeIfChanged(
    home.echoConfig,
    `# Written by hearth up: an echo, not a model. --no-echo leaves it out.\n${stringify({ model_list: models })}`,
  );
}
