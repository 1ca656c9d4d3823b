import { RunError } from "@pulumi/pulumi";
import { issueCertificates } from "./certificates.ts";
import { CouchServer } from "./components/couch-server.ts";
import { Edge } from "./components/edge.ts";
import { Gateway } from "./components/gateway.ts";
import { PostgresServer } from "./components/postgres-server.ts";
import { RedisServer } from "./components/redis-server.ts";
import { SocketProxy } from "./components/socket-proxy.ts";
import { Supervisor } from "./components/supervisor.ts";
import { TlsEndpoint } from "./components/tls-endpoint.ts";
import { readStackConfig } from "./config.ts";
import { createHosts } from "./hosts.ts";
import { describeStack, type StackOutputs } from "./outputs.ts";

/** What a plain `pulumi` command runs: only `npm run deploy -- rotate` knows what a server must be told in a rotation. */
export async function programOutsideRotations(): Promise<StackOutputs> {
  const { rotation } = readStackConfig();
  if (rotation !== undefined) {
    const { of } = JSON.parse(rotation) as { readonly of: string };
    throw new RunError(
      `a rotation of ${of} is not over, nothing was touched: \`npm run deploy -- doctor\` names the command that goes on with it.`,
    );
  }
  return program();
}

/** The whole stack on hosts A and B. Throws ConfigRefused, with every mistake, before anything is registered. */
export async function program(): Promise<StackOutputs> {
  const config = readStackConfig();
  const hosts = createHosts(config);
  const { placement } = config;
  const certificates = await issueCertificates(config);

  const postgres = new PostgresServer(
    "postgres",
    config,
    certificates,
    hosts[placement.postgres],
  );
  const redis = new RedisServer(
    "redis",
    config,
    certificates,
    hosts[placement.redis],
  );
  const notes = new CouchServer("notes", config, hosts[placement.notes]);

  // One after the other: B is replaced and healthy before A is touched.
  const stores = [postgres.gatewayRole, redis.container];
  const gatewayB = new Gateway(
    "gateway-b",
    config,
    certificates,
    hosts,
    hosts.b,
    stores,
  );
  const gatewayA = new Gateway(
    "gateway-a",
    config,
    certificates,
    hosts,
    hosts.a,
    [...stores, gatewayB.container],
  );

  const gateways = [gatewayA.container, gatewayB.container];
  for (const host of [hosts.a, hosts.b]) {
    const { container: socketProxy } = new SocketProxy(
      `socket-proxy-${host.name}`,
      config,
      host,
    );
    const tls = new TlsEndpoint(
      `tls-${host.name}`,
      config,
      certificates,
      hosts,
      host,
    );
    const edge = new Edge(
      `edge-${host.name}`,
      config,
      certificates,
      hosts,
      host,
      [...gateways, notes.container],
    );
    // Last: it would take what is not there yet for down. And a new master key: first those that accept it, then those that
    // use it.
    new Supervisor(
      `supervisor-${host.name}`,
      config,
      certificates,
      hosts,
      host,
      [
        socketProxy,
        postgres.supervisorRole,
        postgres.backupRole,
        edge.container,
        tls.container,
      ],
    );
  }
  return describeStack(config);
}
