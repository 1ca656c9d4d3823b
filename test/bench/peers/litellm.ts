import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { execute, startProcess } from "../../../core/execute.ts";
import { CHAT_ALIAS, EMBEDDING_ALIAS } from "../load-requests.ts";
import { processMeter } from "../meter.ts";
import type { PeerKind } from "./peer.ts";

const MAX_OUTPUT_CHARACTERS = 4_000;
/** Its proxy runs on uvloop, which LiteLLM itself does not require. */
const VERSION =
  "import uvloop; from importlib.metadata import version; print(version('litellm'))";

const binOf = (toolchain: string) => join(toolchain, "python", "bin");

export const LITELLM: PeerKind = {
  title: "LiteLLM",
  async version(toolchain) {
    const python = join(binOf(toolchain), "python3");
    const { ok, stdout } = await execute(python, ["-c", VERSION]);
    return ok ? stdout.trim() : null;
  },
  start(toolchain, { port, providerPort, directory }) {
    const config = join(directory, "litellm.yaml");
    writeFileSync(config, JSON.stringify(configuration(providerPort)));
    let output = "";
    const keep = (text: string) => {
      output = (output + text).slice(-MAX_OUTPUT_CHARACTERS);
    };
    let running = true;
    const started = startProcess(
      join(binOf(toolchain), "litellm"),
      ["--config", config, "--host", "127.0.0.1", "--port", `${port}`],
      {
        cwd: directory,
        detached: true,
        stdout: keep,
        stderr: keep,
        env: {
          PATH: process.env["PATH"] ?? "",
          HOME: directory,
          // Neither a file `.env` nor a list of prices from the internet.
          LITELLM_MODE: "PRODUCTION",
          LITELLM_LOCAL_MODEL_COST_MAP: "True",
          // No keys, as the other peers.
          LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: "true",
          // No line for each call.
          LITELLM_LOG: "ERROR",
          // Its Rust routes, where it has them.
          LITELLM_RUST: "true",
        },
      },
    );
    const ended = started.ended.then(({ reason }) => {
      running = false;
      keep(reason);
    });
    return {
      port,
      headers: {},
      meter: started.pid === undefined ? null : processMeter(started.pid),
      running: () => running,
      output: () => output,
      async stop() {
        await started.stop();
        await ended;
      },
    };
  },
};

/** The same two models as the gateway's. YAML is a superset of JSON. */
function configuration(providerPort: number): object {
  const deployment = (alias: string, model: string) => ({
    model_name: alias,
    litellm_params: {
      model: `openai/${model}`,
      api_base: `http://127.0.0.1:${providerPort}/v1`,
      api_key: "key-of-the-mock-provider",
    },
  });
  return {
    model_list: [
      deployment(CHAT_ALIAS, "gpt-4o-mini"),
      deployment(EMBEDDING_ALIAS, "text-embedding-3-small"),
    ],
  };
}
