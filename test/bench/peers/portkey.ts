import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { meterOf } from "../meter.ts";
import { programFile, startProgram } from "../programs.ts";
import type { PeerKind } from "./peer.ts";

// package.json overrides a dependency of Portkey: with later versions every stream fails (github.com/Portkey-AI/gateway/issues/1389).
const packageIn = (toolchain: string) =>
  join(toolchain, "peers", "node_modules", "@portkey-ai", "gateway");

export const PORTKEY: PeerKind = {
  title: "Portkey",
  version(toolchain) {
    const file = join(packageIn(toolchain), "package.json");
    return Promise.resolve(
      existsSync(file)
        ? (JSON.parse(readFileSync(file, "utf8")) as { version: string })
            .version
        : null,
    );
  },
  start(toolchain, { port, providerPort }) {
    const file = join(packageIn(toolchain), "build", "start-server.js");
    const program = startProgram(file, {
      name: "portkey",
      args: [`--port=${port}`, "--headless"],
      nodeArgs: ["--import", programFile("probe.ts")],
      env: { NODE_ENV: "production" },
      stopWithinMs: 2_000,
    });
    return {
      ...program,
      port,
      meter: meterOf(program),
      headers: {
        authorization: "Bearer key-of-the-mock-provider",
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": `http://127.0.0.1:${providerPort}/v1`,
      },
    };
  },
};
