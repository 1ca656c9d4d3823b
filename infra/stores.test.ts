import { beforeAll, describe, expect, test } from "vitest";
import { WAYS_TO_REGISTER } from "../test/infra/components-by-args.ts";
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
import { containerIni } from "./components/couch-ini.ts";
import { buildRedisUsers } from "./redis-login.ts";

let containers: RegisteredContainers;
let certificates: Awaited<ReturnType<typeof expectedCertificates>>;

beforeAll(async () => {
  certificates = await expectedCertificates();
});

describe.each(WAYS_TO_REGISTER)("from $from", ({ register }) => {
  beforeAll(async () => {
    containers = await register();
  });

  test("Postgres, exactly", () => {
    const { inputs, files } = containers["postgres"] ?? none;
    expect(inputs).toEqual({
      ...always,
      name: "hearth-postgres",
      image: "sha256:of-postgres-image",
      command: [
        "bash",
        "-c",
        'if [ ! -s "$PGDATA/PG_VERSION" ] && compgen -G "/var/lib/postgresql/*/*/PG_VERSION"; then echo "the data is of another major version of Postgres: npm run deploy -- upgrade postgres"; exit 1; fi; install -m 0400 -o postgres /run/hearth/postgres.key /run/hearth/postgres-own.key && exec docker-entrypoint.sh "$@"',
        "bash",
        "postgres",
        "-c",
        "shared_buffers=256MB",
        "-c",
        "max_connections=100",
        "-c",
        "log_min_error_statement=panic",
        "-c",
        "ssl=on",
        "-c",
        "ssl_cert_file=/run/hearth/postgres.crt",
        "-c",
        "ssl_key_file=/run/hearth/postgres-own.key",
        "-c",
        "hba_file=/run/hearth/pg_hba.conf",
      ],
      envs: [
        "POSTGRES_DB=hearth",
        "POSTGRES_PASSWORD_FILE=/run/hearth/POSTGRES_PASSWORD",
      ],
      ports: [tcp("10.8.0.1", 5432)],
      volumes: [volume("hearth-postgres", "/var/lib/postgresql")],
      networksAdvanced: [{ name: "hearth", aliases: ["postgres"] }],
      memory: 1024,
      memorySwap: 1024,
      shmSize: 256,
      capabilities: {
        drops: ["ALL"],
        adds: [
          "CAP_CHOWN",
          "CAP_DAC_OVERRIDE",
          "CAP_FOWNER",
          "CAP_SETGID",
          "CAP_SETUID",
        ],
      },
      healthcheck: {
        tests: ["CMD", "pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"],
        interval: "10s",
        timeout: "5s",
        startPeriod: "30s",
        retries: 5,
      },
      destroyGraceSeconds: 60,
      waitTimeout: 150,
    });
    expect(files).toEqual({
      "/run/hearth/POSTGRES_PASSWORD": "0400 postgres-0123456789abcdef",
      "/docker-entrypoint-initdb.d/10-hearth-roles.sql": `0444 ${text("config/postgres-roles.sql")}`,
      "/run/hearth/pg_hba.conf": `0444 # Commands within the container come by its socket; everything else speaks TLS.
local all all trust
hostssl all all all scram-sha-256
`,
      "/run/hearth/postgres.crt": `0444 ${certificates.postgres.certificate}`,
      "/run/hearth/postgres.key": `0400 ${certificates.postgres.key}`,
    });
  });

  test("Redis, exactly", () => {
    const { inputs, files } = containers["redis"] ?? none;
    expect(inputs).toEqual({
      ...always,
      name: "hearth-redis",
      image: "sha256:of-redis-image",
      command: ["redis-server", "/run/hearth/redis.conf"],
      user: "999:0",
      envs: [],
      ports: [tcp("10.8.0.1", 6379)],
      volumes: [volume("hearth-redis", "/data")],
      networksAdvanced: [{ name: "hearth", aliases: ["redis"] }],
      memory: 512,
      memorySwap: 512,
      healthcheck: {
        tests: [
          "CMD-SHELL",
          'REDISCLI_AUTH="$(cat /run/hearth/REDIS_PASSWORD)" redis-cli --tls --cacert /run/hearth/ca.crt ping | grep -q PONG',
        ],
        interval: "10s",
        timeout: "5s",
        startPeriod: "10s",
        retries: 5,
      },
      destroyGraceSeconds: 30,
      waitTimeout: 150,
    });
    expect(files).toEqual({
      "/run/hearth/REDIS_PASSWORD": "0440 redis-0123456789abcdef",
      "/run/hearth/redis.conf": `0440 bind * -::*
# No plain text.
port 0
tls-port 6379
tls-cert-file /run/hearth/redis.crt
tls-key-file /run/hearth/redis.key
tls-ca-cert-file /run/hearth/ca.crt
# The password says who a client is.
tls-auth-clients no
# The network and the password are the boundary.
protected-mode no
aclfile /run/hearth/redis.acl
dir /data
# Below the container's limit: copy-on-write while the AOF is rewritten needs the rest.
maxmemory 358mb
# Only what expires may go: cache entries do, counters of open windows do not.
maxmemory-policy volatile-lru
appendonly yes
appendfsync everysec
save ""
`,
      "/run/hearth/redis.acl": `0440 ${buildRedisUsers(["redis-0123456789abcdef"])}`,
      "/run/hearth/ca.crt": `0444 ${certificates.authority}`,
      "/run/hearth/redis.crt": `0444 ${certificates.redis.certificate}`,
      "/run/hearth/redis.key": `0440 ${certificates.redis.key}`,
    });
  });

  test("CouchDB, exactly", () => {
    const { inputs, files } = containers["notes"] ?? none;
    expect(inputs).toEqual({
      ...always,
      name: "hearth-couchdb",
      image: "sha256:of-notes-image",
      user: "5984:0",
      envs: [],
      ports: [],
      volumes: [volume("hearth-notes", "/opt/couchdb/data")],
      networksAdvanced: [{ name: "hearth", aliases: ["notes"] }],
      memory: 1024,
      memorySwap: 1024,
      memoryReservation: 512,
      ulimits: [
        { name: "core", soft: 0, hard: 0 },
        { name: "nofile", soft: 65536, hard: 65536 },
      ],
      healthcheck: {
        tests: asksHttp(5984, "/_up"),
        interval: "30s",
        timeout: "10s",
        startPeriod: "20s",
        retries: 3,
      },
      destroyGraceSeconds: 30,
      waitTimeout: 150,
    });
    expect(files).toEqual({
      "/opt/couchdb/etc/local.d/10-hearth.ini": `0440 ${containerIni({
        uuid: "00112233445566778899aabbccddeeff",
        cookieSecret: "cookie-0123456789abcdef",
        adminPassword: "notes-0123456789abcdef",
      })}`,
    });
  });
});
