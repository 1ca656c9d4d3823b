import {
  couchArgs,
  drawBlueprint,
  edgeArgs,
  gatewayArgs,
  postgresArgs,
  redisArgs,
  socketProxyArgs,
  supervisorArgs,
  tlsEndpointArgs,
} from "./component-args.ts";
import { CouchServer } from "./components/couch-server.ts";
import { Edge } from "./components/edge.ts";
import { Gateway } from "./components/gateway.ts";
import { PostgresServer } from "./components/postgres-server.ts";
import { RedisServer } from "./components/redis-server.ts";
import { SocketProxy } from "./components/socket-proxy.ts";
import { Supervisor } from "./components/supervisor.ts";
import { TlsEndpoint } from "./components/tls-endpoint.ts";
import type { HostName } from "./config/config-schema.ts";
import { describeStack, type StackOutputs } from "./outputs.ts";
import { readStackConfig } from "./config/program-config.ts";

/** The whole stack on hosts A and B. Throws ConfigRejected with every mistake before anything is registered. */
export async function program(): Promise<StackOutputs> {
  const plan = drawBlueprint(readStackConfig());
  const { placement } = plan.config;
  const on = (host: HostName) => ({ providers: [plan.hosts[host].provider] });
  const stores = {
    postgres: new PostgresServer(
      "postgres",
      postgresArgs(plan),
      on(placement.postgres),
    ),
    redis: new RedisServer("redis", redisArgs(plan), on(placement.redis)),
  };
  const notes = new CouchServer("notes", couchArgs(plan), on(placement.notes));

  const b = new Gateway("gateway-b", gatewayArgs(plan, "b", stores), on("b"));
  const argsA = { ...gatewayArgs(plan, "a", stores), after: b };
  const a = new Gateway("gateway-a", argsA, on("a"));
  const beforeEdges = [a.container, b.container, notes.container];

  // B first, as with the gateways: A's edge is replaced once B's is healthy.
  for (const host of ["b", "a"] as const) {
    const socketProxy = new SocketProxy(
      `socket-proxy-${host}`,
      socketProxyArgs(plan, host),
      on(host),
    );
    const tls = new TlsEndpoint(
      `tls-${host}`,
      tlsEndpointArgs(plan, host),
      on(host),
    );
    const edge = new Edge(
      `edge-${host}`,
      edgeArgs(plan, host, [...beforeEdges]),
      on(host),
    );
    beforeEdges.push(edge.container);
    // Last: a new master key must be accepted before it is used.
    const watches = [socketProxy.container, edge.container, tls.container];
    new Supervisor(
      `supervisor-${host}`,
      supervisorArgs(plan, host, stores, watches),
      on(host),
    );
  }
  return describeStack(plan.config);
}
