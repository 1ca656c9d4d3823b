import { beforeAll, describe, expect, test } from "vitest";
import { WAYS_TO_REGISTER } from "../test/infra/components-by-args.ts";
import {
  caddyfile,
  haproxyConfig,
  NOTES_HERE,
  NOTES_THERE,
  tlsCaddyfile,
} from "../test/infra/expected-files.ts";
import {
  always,
  asksHttp,
  expectedCertificates,
  none,
  type RegisteredContainers,
  tcp,
  text,
  volume,
} from "../test/infra/expected-inputs.ts";
import { subnets } from "../test/infra/registered.ts";

let containers: RegisteredContainers;
let certificates: Awaited<ReturnType<typeof expectedCertificates>>;

beforeAll(async () => {
  certificates = await expectedCertificates();
});

const HOSTS = [
  {
    host: "a",
    own: "10.8.0.1",
    other: "10.8.0.2",
    redis: "redis",
    postgres: "postgres",
  },
  {
    host: "b",
    own: "10.8.0.2",
    other: "10.8.0.1",
    redis: "10.8.0.1",
    postgres: "10.8.0.1",
  },
];

describe.each(WAYS_TO_REGISTER)("from $from", ({ register }) => {
  beforeAll(async () => {
    containers = await register();
  });

  describe.each(HOSTS)(
    "on host $host",
    ({ host, own, other, redis, postgres }) => {
      const onData = host === "a";
      const published = onData
        ? ["10.8.0.1", "192.168.1.10"]
        : ["192.168.1.11"];
      const everywhere = onData ? published : ["10.8.0.2", "192.168.1.11"];

      test("the gateway, exactly", () => {
        const { inputs, files } = containers[`gateway-${host}`] ?? none;
        expect(inputs).toEqual({
          ...always,
          name: "hearth-gateway",
          image: `sha256:of-gateway-${host}-image`,
          user: "1000:0",
          envs: [
            "DATABASE_URL_FILE=/run/hearth/DATABASE_URL",
            `HEARTH_CONSOLE_URL=https://${onData ? "192.168.1.10" : "192.168.1.11"}:4443`,
            "HEARTH_DRAIN_NOTICE=5s",
            "HEARTH_EXTRA_CONFIG=/app/hearth.yaml",
            "HEARTH_GATEWAY_CONFIG=/app/config.yaml",
            "HEARTH_GATEWAY_HOST=0.0.0.0",
            "HEARTH_GATEWAY_PORT=4001",
            "HEARTH_JOURNAL_DIR=/var/lib/hearth/journal",
            "HEARTH_SALT_KEY_FILE=/run/hearth/HEARTH_SALT_KEY",
            "LOCAL_RUNNER_A_URL=http://192.168.1.10:11434",
            "LOCAL_RUNNER_B_URL=http://192.168.1.11:1234/v1",
            "OPENAI_API_KEY_FILE=/run/hearth/OPENAI_API_KEY",
            "PROXY_MASTER_KEY_FILE=/run/hearth/PROXY_MASTER_KEY",
            "REDIS_CA_FILE=/run/hearth/ca.crt",
            `REDIS_HOST=${redis}`,
            "REDIS_PASSWORD_FILE=/run/hearth/REDIS_PASSWORD",
            "REDIS_PORT=6379",
          ],
          ports: [],
          volumes: [volume("hearth-journal", "/var/lib/hearth/journal")],
          networksAdvanced: [{ name: "hearth", aliases: ["gateway"] }],
          memory: 512,
          memorySwap: 512,
          healthcheck: {
            tests: asksHttp(4001, "/health/liveliness"),
            interval: "10s",
            timeout: "5s",
            startPeriod: "10s",
            retries: 3,
          },
          // The drain's 120 s, its notice's 5 s, and 10 s more.
          destroyGraceSeconds: 135,
          waitTimeout: 150,
        });
        expect(files).toEqual({
          "/run/hearth/DATABASE_URL": `0440 postgresql://gateway_a:gateway-0123456789abcdef@${postgres}:5432/hearth?sslmode=verify-full&sslrootcert=/run/hearth/ca.crt`,
          "/run/hearth/HEARTH_SALT_KEY": "0440 salt-0123456789abcdef0123",
          "/run/hearth/OPENAI_API_KEY": "0440 sk-openai-0123456789",
          "/run/hearth/PROXY_MASTER_KEY": "0440 sk-master-0123456789abcdef",
          "/run/hearth/REDIS_PASSWORD": "0440 redis-0123456789abcdef",
          "/run/hearth/ca.crt": `0444 ${certificates.authority}`,
          "/app/config.yaml": `0440 ${text("config/gateway.yaml")}`,
          "/app/hearth.yaml": `0440 general_settings:
  drain_timeout: 120
  trusted_proxies:
    - ${subnets[`network-${host}`]}
    - ${other}
`,
        });
      });

      test("the supervisor, exactly", () => {
        const { inputs, files } = containers[`supervisor-${host}`] ?? none;
        expect(inputs).toEqual({
          ...always,
          name: "hearth-supervisor",
          image: `sha256:of-supervisor-${host}-image`,
          user: "1000:0",
          envs: [
            "BACKUP_DATABASE_URL_FILE=/run/hearth/BACKUP_DATABASE_URL",
            "DOCKER_HOST=tcp://socket-proxy:2375",
            "GATEWAY_PUBLIC_URL=http://192.168.1.10:4000",
            "GATEWAY_URL=http://gateway:4001",
            "HEARTH_CERTIFICATES=/run/hearth/servers.crt",
            `HEARTH_CONTAINERS=${onData ? "edge gateway notes postgres redis tls" : "edge gateway tls"}`,
            "HEARTH_CONTAINER_PREFIX=hearth",
            "HEARTH_HOME=/var/lib/hearth",
            `HEARTH_HOST_NAME=host ${host.toUpperCase()}`,
            `HEARTH_JOBS=${onData ? "on" : "off"}`,
            "HEARTH_OPERATOR_PASSWORD_FILE=/run/hearth/HEARTH_OPERATOR_PASSWORD",
            `HEARTH_PEER_URL=https://${other}:4443`,
            "HEARTH_PROXY_HOPS=1",
            "HEARTH_RUNTIME=docker",
            "HEARTH_SUPERVISOR_HOST=0.0.0.0",
            "HEARTH_SUPERVISOR_PORT=4080",
            "HEARTH_URL=http://127.0.0.1:4080",
            "NODE_EXTRA_CA_CERTS=/run/hearth/ca.crt",
            "NOTES_ADMIN_PASSWORD_FILE=/run/hearth/NOTES_ADMIN_PASSWORD",
            "NOTES_PUBLIC_URL=http://192.168.1.10:5984",
            `NOTES_URL=${onData ? "http://notes:5984" : "https://10.8.0.1:6984"}`,
            `PEER_GATEWAY_URL=https://${other}:4444`,
            "PROXY_MASTER_KEY_FILE=/run/hearth/PROXY_MASTER_KEY",
            "REDIS_CA_FILE=/run/hearth/ca.crt",
            `REDIS_HOST=${redis}`,
            "REDIS_PASSWORD_FILE=/run/hearth/REDIS_PASSWORD",
            "REDIS_PORT=6379",
            "SLACK_URL_FILE=/run/hearth/SLACK_URL",
            "SUPERVISOR_DATABASE_URL_FILE=/run/hearth/SUPERVISOR_DATABASE_URL",
            `SUPERVISOR_PUBLIC_URL=https://${onData ? "192.168.1.10" : "192.168.1.11"}:4443`,
          ],
          ports: [],
          volumes: [
            volume("hearth-supervisor", "/var/lib/hearth"),
            volume("hearth-backups", "/var/lib/hearth/backups"),
          ],
          networksAdvanced: [
            { name: "hearth", aliases: ["supervisor"] },
            { name: "hearth-socket", aliases: [] },
          ],
          memory: 256,
          memorySwap: 256,
          healthcheck: {
            tests: asksHttp(4080, "/healthz"),
            interval: "10s",
            timeout: "5s",
            startPeriod: "10s",
            retries: 3,
          },
          destroyGraceSeconds: 20,
          waitTimeout: 150,
        });
        expect(files).toEqual({
          "/run/hearth/BACKUP_DATABASE_URL": `0440 postgresql://backup:backup-0123456789abcdef@${postgres}:5432/hearth?sslmode=verify-full&sslrootcert=/run/hearth/ca.crt`,
          "/run/hearth/HEARTH_OPERATOR_PASSWORD":
            "0440 operator-0123456789abcdef",
          "/run/hearth/NOTES_ADMIN_PASSWORD": "0440 notes-0123456789abcdef",
          "/run/hearth/PROXY_MASTER_KEY": "0440 sk-master-0123456789abcdef",
          "/run/hearth/REDIS_PASSWORD": "0440 redis-0123456789abcdef",
          "/run/hearth/ca.crt": `0444 ${certificates.authority}`,
          "/run/hearth/servers.crt": `0444 ${certificates.postgres.certificate}${certificates.redis.certificate}${certificates.tls.a.certificate}${certificates.tls.b.certificate}`,
          "/run/hearth/SLACK_URL":
            "0440 https://hooks.example.org/slack-0123456789",
          "/run/hearth/SUPERVISOR_DATABASE_URL": `0440 postgresql://supervisor:supervisor-0123456789abcdef@${postgres}:5432/hearth?sslmode=verify-full&sslrootcert=/run/hearth/ca.crt`,
        });
      });

      test("the socket proxy, exactly", () => {
        const { inputs, files } = containers[`socket-proxy-${host}`] ?? none;
        expect(inputs).toEqual({
          ...always,
          name: "hearth-socket-proxy",
          image: `sha256:of-socket-proxy-${host}-image`,
          command: [
            "haproxy",
            "-W",
            "-db",
            "-f",
            "/usr/local/etc/haproxy/haproxy.cfg",
          ],
          user: "0:0",
          envs: [],
          ports: [],
          volumes: [
            {
              hostPath: "/var/run/docker.sock",
              containerPath: "/var/run/docker.sock",
              readOnly: false,
            },
          ],
          networksAdvanced: [
            { name: "hearth-socket", aliases: ["socket-proxy"] },
          ],
          memory: 64,
          memorySwap: 64,
          healthcheck: {
            tests: asksHttp(2375, "/healthz", " || { kill 1; exit 1; }"),
            interval: "10s",
            timeout: "5s",
            startPeriod: "5s",
            retries: 3,
          },
          destroyGraceSeconds: 10,
          waitTimeout: 150,
        });
        expect(files).toEqual({
          "/usr/local/etc/haproxy/haproxy.cfg": `0444 ${haproxyConfig}`,
        });
      });

      /** Except ports and volumes. */
      const runsCaddy = (alias: string) => ({
        ...always,
        name: `hearth-${alias}`,
        image: `sha256:of-${alias}-${host}-image`,
        command: [
          "caddy",
          "run",
          "--config",
          "/etc/caddy/Caddyfile",
          "--adapter",
          "caddyfile",
        ],
        envs: [],
        networksAdvanced: [{ name: "hearth", aliases: [alias] }],
        memory: 128,
        memorySwap: 128,
        capabilities: { drops: ["ALL"], adds: ["CAP_NET_BIND_SERVICE"] },
        healthcheck: {
          tests: [
            "CMD",
            "wget",
            "-q",
            "-O",
            "/dev/null",
            "http://127.0.0.1:2020/",
          ],
          interval: "10s",
          timeout: "5s",
          startPeriod: "5s",
          retries: 3,
        },
        destroyGraceSeconds: 30,
        waitTimeout: 150,
      });

      test("the edge, exactly", () => {
        const { inputs, files } = containers[`edge-${host}`] ?? none;
        expect(inputs).toEqual({
          ...runsCaddy("edge"),
          ports: [4000, 5984].flatMap((port) =>
            published.map((ip) => tcp(ip, port)),
          ),
          volumes: [volume("hearth-certificates", "/data")],
        });
        expect(files).toEqual({
          "/etc/caddy/Caddyfile": `0444 ${caddyfile({
            other,
            notes: onData ? NOTES_HERE : NOTES_THERE,
          })}`,
          "/run/hearth/ca.crt": `0444 ${certificates.authority}`,
        });
      });

      test("the TLS endpoint, exactly", () => {
        const { inputs, files } = containers[`tls-${host}`] ?? none;
        expect(inputs).toEqual({
          ...runsCaddy("tls"),
          ports: [
            ...everywhere.map((ip) => tcp(ip, 4443)),
            tcp(own, 4444),
            ...(onData ? [tcp(own, 6984)] : []),
          ],
          volumes: [],
        });
        const { certificate, key } = certificates.tls[onData ? "a" : "b"];
        expect(files).toEqual({
          "/etc/caddy/Caddyfile": `0444 ${tlsCaddyfile({ other, hasNotes: onData })}`,
          "/run/hearth/tls.crt": `0444 ${certificate}`,
          "/run/hearth/tls.key": `0400 ${key}`,
        });
      });
    },
  );
});
