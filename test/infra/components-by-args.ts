import { secret } from "@pulumi/pulumi";
import { allCertificates } from "../../infra/certificates.ts";
import { CouchServer } from "../../infra/components/couch-server.ts";
import { Edge } from "../../infra/components/edge.ts";
import { Gateway } from "../../infra/components/gateway.ts";
import { PostgresServer } from "../../infra/components/postgres-server.ts";
import { RedisServer } from "../../infra/components/redis-server.ts";
import { SocketProxy } from "../../infra/components/socket-proxy.ts";
import { Supervisor } from "../../infra/components/supervisor.ts";
import { TlsEndpoint } from "../../infra/components/tls-endpoint.ts";
import { readConfig } from "../../infra/config/config.ts";
import { createHosts } from "../../infra/hosts.ts";
import {
  expectedCertificates,
  registerContainers,
  text,
} from "./expected-inputs.ts";
import { validConfig } from "./stack-config.ts";

const IMAGE = "example.org/image:1";

/** The same containers by the whole program, and by the arguments of each component. */
export const WAYS_TO_REGISTER = [
  { from: "the configuration", register: () => registerContainers() },
  {
    from: "arguments",
    register: () => registerContainers(validConfig, makeComponents),
  },
];

/** Every component of the stack from its arguments alone, with the values of `validConfig`. */
async function makeComponents(): Promise<void> {
  const certificates = await expectedCertificates();
  const { authority } = certificates;
  const read = readConfig({ values: validConfig, isSecret: () => true });
  if (!read.ok) {
    throw new Error(read.errors.join());
  }
  // Only the hosts' part is used; the components' arguments are below.
  const hosts = createHosts(read.config);
  const onA = { providers: [hosts.a.provider] };
  const postgres = new PostgresServer(
    "postgres",
    {
      host: hosts.a,
      image: IMAGE,
      version: "18",
      memoryMiB: 1024,
      password: secret("postgres-0123456789abcdef"),
      certificate: certificates.postgres,
      authority,
      reachedAt: { host: "10.8.0.1", port: 5432, isNamed: true },
      logins: {
        gateway: login("gateway_a", "gateway-0123456789abcdef"),
        supervisor: login("supervisor", "supervisor-0123456789abcdef"),
        backup: login("backup", "backup-0123456789abcdef"),
      },
    },
    onA,
  );
  const redis = new RedisServer(
    "redis",
    {
      host: hosts.a,
      image: IMAGE,
      memoryMiB: 512,
      password: secret("redis-0123456789abcdef"),
      certificate: certificates.redis,
      authority,
    },
    onA,
  );
  const notes = new CouchServer(
    "notes",
    {
      host: hosts.a,
      image: IMAGE,
      uuid: "00112233445566778899aabbccddeeff",
      cookieSecret: secret("cookie-0123456789abcdef"),
      adminPassword: secret("notes-0123456789abcdef"),
      data: "volume",
      openFiles: 65_536,
    },
    onA,
  );
  for (const name of ["a", "b"] as const) {
    const host = hosts[name];
    const peer = name === "a" ? hosts.b : hosts.a;
    const hasNotes = name === "a";
    const on = { providers: [host.provider] };
    const gateway = new Gateway(
      `gateway-${name}`,
      {
        host,
        image: IMAGE,
        memoryMiB: 512,
        database: postgres.loginFrom(host, "gateway"),
        redis: redis.connectionFrom(host),
        authority,
        masterKey: secret("sk-master-0123456789abcdef"),
        saltKey: secret("salt-0123456789abcdef0123"),
        providerKeys: { OPENAI_API_KEY: secret("sk-openai-0123456789") },
        localRunners: {
          LOCAL_RUNNER_A_URL: "http://192.168.1.10:11434",
          LOCAL_RUNNER_B_URL: "http://192.168.1.11:1234/v1",
        },
        consoleUrl: `https://192.168.1.1${name === "a" ? "0" : "1"}:4443`,
        settings: host.subnets.apply((subnets) => ({
          file: text("config/gateway.yaml"),
          layer: `general_settings:
  drain_timeout: 120
  trusted_proxies:
    - ${subnets.join()}
    - ${peer.address}
`,
        })),
        drainNoticeSeconds: 5,
        drainSeconds: 120,
      },
      on,
    );
    const socketProxy = new SocketProxy(
      `socket-proxy-${name}`,
      { host, image: IMAGE },
      on,
    );
    const tls = new TlsEndpoint(
      `tls-${name}`,
      {
        host,
        peer,
        image: IMAGE,
        certificate: certificates.tls[name],
        hasNotes,
      },
      on,
    );
    const edge = new Edge(
      `edge-${name}`,
      {
        host,
        peer,
        image: IMAGE,
        hasNotes,
        authority,
        https: { tls: "none" },
        upstreams: [gateway.container, notes.container],
      },
      on,
    );
    const watches = [socketProxy.container, edge.container, tls.container];
    new Supervisor(
      `supervisor-${name}`,
      {
        host,
        peer,
        image: IMAGE,
        authority,
        watches,
        memoryMiB: 256,
        hasJobs: name === "a",
        services:
          name === "a"
            ? ["edge", "gateway", "notes", "postgres", "redis", "tls"]
            : ["edge", "gateway", "tls"],
        database: postgres.loginFrom(host, "supervisor"),
        backupDatabase: postgres.loginFrom(host, "backup"),
        redis: redis.connectionFrom(host),
        notesUrl: hasNotes ? "http://notes:5984" : "https://10.8.0.1:6984",
        certificates: allCertificates(certificates),
        masterKey: secret("sk-master-0123456789abcdef"),
        notesAdminPassword: secret("notes-0123456789abcdef"),
        operatorPassword: secret("operator-0123456789abcdef"),
        alertSecrets: {
          SLACK_URL: secret("https://hooks.example.org/slack-0123456789"),
        },
        backups: "volume",
        publicUrls: {
          gateway: "http://192.168.1.10:4000",
          notes: "http://192.168.1.10:5984",
          supervisor: `https://192.168.1.1${name === "a" ? "0" : "1"}:4443`,
        },
      },
      on,
    );
  }
}

const login = (name: string, password: string) => ({
  name,
  password: secret(password),
  isImported: false,
});
