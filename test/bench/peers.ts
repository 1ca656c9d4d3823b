import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../servers/postgres.ts";
import { programFile, startProgram, type Program } from "./programs.ts";

/** Another gateway to compare with. */
export interface Peer extends Program {
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
}

export const PEERS = ["portkey"] as const;
export type PeerName = (typeof PEERS)[number];

const PORTKEY = "@portkey-ai/gateway";
const ANSWERS_WITHIN_MS = 30_000;

/** The program of a peer in `directory`; throws if it is not installed. */
export function findPeer(name: PeerName, directory: string): string {
  switch (name) {
    case "portkey": {
      const file = join(
        resolve(directory),
        "node_modules",
        PORTKEY,
        "build",
        "start-server.js",
      );
      if (existsSync(file)) {
        return file;
      }
      throw new Error(
        `${PORTKEY} is not installed in ${directory}: run \`npm install --prefix ${directory} ${PORTKEY}\` and pass that directory as --peer-dir.`,
      );
    }
  }
}

/** Starts it without optional features, with the same provider. */
export async function startPeer(
  name: PeerName,
  file: string,
  providerPort: number,
): Promise<Peer> {
  const port = await freePort();
  const program = startProgram(file, {
    name,
    args: [`--port=${port}`, "--headless"],
    nodeArgs: ["--import", programFile("probe.ts")],
    env: { NODE_ENV: "production" },
    stopWithinMs: 2_000,
  });
  const latest = performance.now() + ANSWERS_WITHIN_MS;
  while (!(await answers(port))) {
    if (!program.running() || performance.now() > latest) {
      await program.stop();
      throw new Error(`${name} did not start. Output: ${program.output()}`);
    }
    await sleep(100);
  }
  return {
    ...program,
    port,
    headers: {
      authorization: "Bearer key-of-the-mock-provider",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `http://127.0.0.1:${providerPort}/v1`,
    },
  };
}

async function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    async (answer) => {
      await answer.body?.cancel();
      return true;
    },
    () => false,
  );
}
