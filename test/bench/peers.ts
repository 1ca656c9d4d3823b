import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../servers/ports.ts";
import { USER_CACHE } from "../servers/user-cache.ts";
import { CHAT_ALIAS } from "./load-requests.ts";
import { LITELLM } from "./peers/litellm.ts";
import type { Peer, PeerKind, PeerOptions } from "./peers/peer.ts";
import { PORTKEY } from "./peers/portkey.ts";

export const PEERS = ["portkey", "litellm"] as const;
export type PeerName = (typeof PEERS)[number];

/** Another gateway to compare with. */
export interface InstalledPeer {
  readonly name: PeerName;
  readonly title: string;
  readonly version: string;
}

const KINDS: Readonly<Record<PeerName, PeerKind>> = {
  portkey: PORTKEY,
  litellm: LITELLM,
};
/** Where scripts/toolchain.sh installs programs. */
const TOOLCHAIN = join(USER_CACHE, "toolchain");
/** LiteLLM takes half a minute on a busy machine. */
const ANSWERS_WITHIN_MS = 180_000;

/** Finds installed peers; throws one sentence with the command that installs what is missing. */
export async function findPeers(
  names: readonly PeerName[],
  toolchain: string = TOOLCHAIN,
): Promise<readonly InstalledPeer[]> {
  const found = await Promise.all(
    names.map(async (name) => {
      const { title } = KINDS[name];
      return { name, title, version: await KINDS[name].version(toolchain) };
    }),
  );
  const missing = found
    .filter(({ version }) => version === null)
    .map(({ title }) => title);
  if (missing.length > 0) {
    throw new Error(
      `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} not installed: run \`scripts/toolchain.sh peers\`.`,
    );
  }
  return found.map((peer) => ({ ...peer, version: peer.version ?? "" }));
}

/** Starts it without optional features, with the mock provider, and waits until it answers a call. */
export async function startPeer(
  { name, title }: InstalledPeer,
  options: Omit<PeerOptions, "port">,
): Promise<Peer> {
  const port = await freePort();
  const peer = KINDS[name].start(TOOLCHAIN, { ...options, port });
  const latest = performance.now() + ANSWERS_WITHIN_MS;
  for (;;) {
    const answer = await call(peer);
    if (answer === 200) {
      return peer;
    }
    if (!peer.running() || performance.now() > latest) {
      await peer.stop();
      throw new Error(
        `${title} does not answer calls (${answer}). Output: ${peer.output().trim()}`,
      );
    }
    await sleep(100);
  }
}

/** Sends one call; returns the status, or why there is none. */
async function call({ port, headers }: Peer): Promise<number | string> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({
        model: CHAT_ALIAS,
        messages: [{ role: "user", content: "Hello" }],
      }),
    });
    await answer.body?.cancel();
    return answer.status;
  } catch (error) {
    return (error as Error).message;
  }
}
