import { Agent } from "undici";
import type { Deployment } from "../config/types.ts";
import { publicConnector } from "./public-connection.ts";

/** Load balancers forget idle connections after a minute at the earliest. */
const KEEP_ALIVE_MS = 55_000;

/**
 * HTTP to other services over kept-alive connections, one for each request at a time. Not HTTP/2: requests to a host would wait, one
 * after the other, until a connection has shown which version it speaks.
 */
export function outgoingAgent(options: Agent.Options): Agent {
  return new Agent({
    keepAliveTimeout: KEEP_ALIVE_MS,
    connections: null,
    allowH2: false,
    ...options,
  });
}

/** HTTP to the servers of deployments: some may only be at public addresses. */
export class DeploymentAgents {
  readonly any: Agent;
  readonly public: Agent;

  constructor(connectMs: number, maxResponseSize: number) {
    const connect = { timeout: connectMs };
    this.any = outgoingAgent({ connect, maxResponseSize });
    this.public = outgoingAgent({
      connect: publicConnector({ ...connect, allowH2: false }),
      maxResponseSize,
    });
  }

  of({ publicOnly }: Pick<Deployment, "publicOnly">): Agent {
    return publicOnly ? this.public : this.any;
  }

  async close(): Promise<void> {
    await Promise.all([this.any.close(), this.public.close()]);
  }

  async destroy(): Promise<void> {
    await Promise.all([this.any.destroy(), this.public.destroy()]);
  }
}
