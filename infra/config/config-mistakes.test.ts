import { expect, test } from "vitest";
import { validConfig } from "../../test/infra/stack-config.ts";
import { DAY_MS } from "../../core/duration.ts";
import { makeSelfSigned } from "../../test/supervisor/self-signed.ts";
import { configSchema, secretFields } from "./config-schema.ts";
import { readConfig, readHostSettings } from "./config.ts";

type Changes = Readonly<Record<string, string | undefined>>;

const right = JSON.parse(validConfig["hosts"] ?? "") as {
  readonly a: object;
  readonly b: object;
};
const hosts = (a: object, b: object = {}): Changes => ({
  hosts: JSON.stringify({ a: { ...right.a, ...a }, b: { ...right.b, ...b } }),
});
const group = (name: string, value: unknown): Changes => ({
  [name]: JSON.stringify(value),
});

const tomorrow = new Date(Date.now() + DAY_MS);
const chain = makeSelfSigned(tomorrow, ["hearth.example.org"]);
const otherChain = makeSelfSigned(tomorrow, ["hearth.example.org"]);
const wildcard = makeSelfSigned(tomorrow, ["*.example.org"]);

/** A stack with the operator's own certificate for hearth.example.org and these names. */
const ownCertificate = (
  { cert, key }: typeof chain,
  names: { readonly notesHostname?: string },
): Changes => ({
  ...group("edge", { tls: "files", hostname: "hearth.example.org", ...names }),
  edgeCertificate: cert,
  edgeKey: key,
});

/** Mistakes and their complete messages. */
const MISTAKES: readonly (readonly [Changes, ...(readonly string[])])[] = [
  [
    { runtime: "swarm" },
    "hearth:runtime must be docker or kubernetes: npx pulumi config set hearth:runtime docker",
  ],
  [
    { hosts: "here" },
    "hearth:hosts must be a group of settings: npx pulumi config rm hearth:hosts",
  ],
  [
    { hosts: undefined },
    "hearth:hosts.a.docker is required: npx pulumi config set --path hearth:hosts.a.docker ssh://root@192.168.1.10",
    "hearth:hosts.a.address is required: npx pulumi config set --path hearth:hosts.a.address 192.168.1.10",
    "hearth:hosts.a.publish is required: npx pulumi config set --path 'hearth:hosts.a.publish[0]' 192.168.1.10",
    "hearth:hosts.b.docker is required: npx pulumi config set --path hearth:hosts.b.docker ssh://root@192.168.1.11",
    "hearth:hosts.b.address is required: npx pulumi config set --path hearth:hosts.b.address 192.168.1.11",
    "hearth:hosts.b.publish is required: npx pulumi config set --path 'hearth:hosts.b.publish[0]' 192.168.1.11",
  ],
  [
    group("hosts", { a: right.a, b: "there" }),
    "hearth:hosts.b must be a group of settings: npx pulumi config rm --path hearth:hosts.b",
  ],
  ...["ssh://root@10.8.0.1:99999", "tcp://10.8.0.1:0"].map(
    (docker) =>
      [
        hosts({ docker }),
        "hearth:hosts.a.docker must have a port from 1 to 65535: npx pulumi config set --path hearth:hosts.a.docker ssh://root@192.168.1.10",
      ] as const,
  ),
  [
    hosts({ docker: "ssh://root@10.8.0.1/x" }),
    "hearth:hosts.a.docker must be ssh://USER@HOST, unix:///var/run/docker.sock or tcp://HOST:PORT (an IPv6 address in brackets): npx pulumi config set --path hearth:hosts.a.docker ssh://root@192.168.1.10",
  ],
  [
    hosts({ docker: 5 }),
    "hearth:hosts.a.docker must be a Docker address: npx pulumi config set --path hearth:hosts.a.docker ssh://root@192.168.1.10",
  ],
  [
    hosts({ address: "host-a" }),
    "hearth:hosts.a.address must be an IP address of that host: npx pulumi config set --path hearth:hosts.a.address 192.168.1.10",
  ],
  [
    hosts({ address: "::" }),
    "hearth:hosts.a.address must be one address of that host, since everything would be open to every network: npx pulumi config set --path hearth:hosts.a.address 192.168.1.10",
  ],
  [
    hosts({ address: "203.0.113.5" }),
    "hearth:hosts.a.address must be a private address (LAN or VPN): Postgres, Redis and the gateways listen there: npx pulumi config set --path hearth:hosts.a.address 192.168.1.10",
  ],
  [
    hosts({ address: "127.0.0.1" }),
    "hearth:hosts.a.address must be an address that the other host reaches: loopback stays on that host: npx pulumi config set --path hearth:hosts.a.address 192.168.1.10",
  ],
  [
    hosts({ address: "fd00::10" }),
    "hearth:hosts.a.address must be an IPv4 address: containers connect to it, and their networks have IPv4 only: npx pulumi config set --path hearth:hosts.a.address 192.168.1.10",
  ],
  [
    hosts({ publish: ["192.168.1.10", "203.0.113.5"] }),
    "hearth:hosts.a.publish.1 is 203.0.113.5, a public address: only HTTPS is served there, and edge.hostname is not set: npx pulumi config set --path 'hearth:hosts.a.publish[1]' 192.168.1.10",
  ],
  [
    { caKey: undefined },
    "hearth:caKey is required: openssl genrsa 3072 | npx pulumi config set --secret hearth:caKey",
  ],
  [
    { caKey: "-----BEGIN PRIVATE KEY-----\n…" },
    "hearth:caKey must be an RSA private key in PEM form: openssl genrsa 3072 | npx pulumi config set --secret hearth:caKey",
  ],
  [
    hosts({ publish: "192.168.1.10" }),
    "hearth:hosts.a.publish must be a list of addresses: npx pulumi config set --path 'hearth:hosts.a.publish[0]' 192.168.1.10",
  ],
  [
    hosts({ publish: [] }),
    "hearth:hosts.a.publish must be a list of at least one address: npx pulumi config set --path 'hearth:hosts.a.publish[0]' 192.168.1.10",
  ],
  [
    hosts({ publish: ["lan"] }),
    "hearth:hosts.a.publish.0 must be an IP address of that host: npx pulumi config set --path 'hearth:hosts.a.publish[0]' 192.168.1.10",
  ],
  [
    hosts({ socket: "docker.sock" }),
    "hearth:hosts.a.socket must be an absolute path on that host: npx pulumi config set --path hearth:hosts.a.socket /var/run/docker.sock",
  ],
  [
    hosts({ sshOpts: "-v" }),
    "hearth:hosts.a.sshOpts must be a list of ssh options: npx pulumi config set --path 'hearth:hosts.a.sshOpts[0]' -- -oControlMaster=auto",
  ],
  [
    hosts({ sshOpts: [1] }),
    "hearth:hosts.a.sshOpts.0 must be an option of ssh: npx pulumi config set --path 'hearth:hosts.a.sshOpts[0]' -- -oControlMaster=auto",
  ],
  [
    hosts({ sock: "/x" }),
    'hearth:hosts.a: unknown setting "sock" (did you mean "socket"?): npx pulumi config rm --path hearth:hosts.a.sock',
  ],
  [
    hosts({}, { address: "10.8.0.1" }),
    "hearth:hosts.b.address is the same address as host A's: npx pulumi config set --path hearth:hosts.b.address 192.168.1.11",
  ],
  [
    hosts({}, { docker: "ssh://root@192.168.1.10" }),
    "hearth:hosts.b.docker is the same engine as host A's: npx pulumi config set --path hearth:hosts.b.docker ssh://root@192.168.1.11",
  ],
  [
    hosts({}, { docker: "ssh://admin@192.168.1.10:22" }),
    "hearth:hosts.b.docker is the same engine as host A's: npx pulumi config set --path hearth:hosts.b.docker ssh://root@192.168.1.11",
  ],
  [
    hosts({ docker: "ssh://root@fd00::10" }),
    "hearth:hosts.a.docker must be ssh://USER@HOST, unix:///var/run/docker.sock or tcp://HOST:PORT (an IPv6 address in brackets): npx pulumi config set --path hearth:hosts.a.docker ssh://root@192.168.1.10",
  ],
  [
    hosts({ docker: "ssh://root@nas:ssh" }),
    "hearth:hosts.a.docker must be ssh://USER@HOST, unix:///var/run/docker.sock or tcp://HOST:PORT (an IPv6 address in brackets): npx pulumi config set --path hearth:hosts.a.docker ssh://root@192.168.1.10",
  ],
  [
    { placement: "a" },
    "hearth:placement must be a group of settings: npx pulumi config rm hearth:placement",
  ],
  [
    group("placement", { notes: "c" }),
    "hearth:placement.notes must be a or b: npx pulumi config set --path hearth:placement.notes a",
  ],
  [
    group("placement", { note: "a" }),
    'hearth:placement: unknown setting "note" (did you mean "notes"?): npx pulumi config rm --path hearth:placement.note',
  ],
  [
    { prefix: "My Stack" },
    "hearth:prefix must be a name such as hearth: lower-case letters, digits and -, at most 31: npx pulumi config set hearth:prefix hearth",
  ],
  [
    group("ports", { edge: 0 }),
    "hearth:ports.edge must be a whole number from 1 to 65535: npx pulumi config set --path hearth:ports.edge 4000",
  ],
  [
    group("ports", { notes: 4000, postgres: 6379 }),
    "hearth:ports.notes is 4000, which ports.edge has too: npx pulumi config set --path hearth:ports.notes 5984",
    "hearth:ports.postgres is 6379, which ports.redis has too: npx pulumi config set --path hearth:ports.postgres 5432",
  ],
  [
    {
      ...group("ports", { console: 443 }),
      ...group("edge", { tls: "internal", hostname: "hearth.example.org" }),
    },
    "hearth:ports.console is 443, which ports.edgeTls has too: npx pulumi config set --path hearth:ports.console 4443",
  ],
  [
    { memory: "512" },
    "hearth:memory must be a group of settings: npx pulumi config rm hearth:memory",
  ],
  [
    group("memory", { gateway: "much" }),
    "hearth:memory.gateway must be a whole number from 192 to 1048576: npx pulumi config set --path hearth:memory.gateway 512",
  ],
  [
    group("memory", { gateway: 128, supervisor: 64 }),
    "hearth:memory.gateway must be a whole number from 192 to 1048576: npx pulumi config set --path hearth:memory.gateway 512",
    "hearth:memory.supervisor must be a whole number from 128 to 1048576: npx pulumi config set --path hearth:memory.supervisor 256",
  ],
  [
    group("memory", { gateway: 1.5 }),
    "hearth:memory.gateway must be a whole number from 192 to 1048576: npx pulumi config set --path hearth:memory.gateway 512",
  ],
  [
    { images: "none" },
    "hearth:images must be a group of settings: npx pulumi config rm hearth:images",
  ],
  [
    group("images", { caddy: "Caddy" }),
    "hearth:images.caddy must be an image such as docker.io/library/redis:8@sha256:<64 hex digits>: npx pulumi config set --path hearth:images.caddy NAME:TAG@sha256:DIGEST",
  ],
  [
    group("images", { caddy: "caddy:2@sha256:12" }),
    "hearth:images.caddy must be an image such as docker.io/library/redis:8@sha256:<64 hex digits>: npx pulumi config set --path hearth:images.caddy NAME:TAG@sha256:DIGEST",
  ],
  [
    group("images", { caddy: "caddy:2" }),
    "hearth:images.caddy is caddy:2, which has no digest, so its content can change (for images that exist only on the hosts: npx pulumi config set hearth:imagesWithoutDigest allow): npx pulumi config set --path hearth:images.caddy NAME:TAG@sha256:DIGEST",
  ],
  [
    group("images", { cady: "caddy:2" }),
    'hearth:images: unknown setting "cady" (did you mean "caddy"?): npx pulumi config rm --path hearth:images.cady',
  ],
  [
    group("images", { caddy: 5 }),
    "hearth:images.caddy must be an image: npx pulumi config set --path hearth:images.caddy NAME:TAG@sha256:DIGEST",
  ],
  [
    { imagesWithoutDigest: "yes" },
    "hearth:imagesWithoutDigest must be refuse or allow: npx pulumi config set hearth:imagesWithoutDigest refuse",
  ],
  [
    group("edge", { tls: "yes" }),
    "hearth:edge.tls must be none, files, internal or acme: npx pulumi config set --path hearth:edge.tls internal",
  ],
  [
    group("edge", { tls: "internal", hostname: "Hearth" }),
    "hearth:edge.hostname must be a host name in lower case such as hearth.example.org: npx pulumi config set --path hearth:edge.hostname hearth.example.org",
  ],
  [
    group("edge", { tls: "internal", hostname: 5 }),
    "hearth:edge.hostname must be a host name: npx pulumi config set --path hearth:edge.hostname hearth.example.org",
  ],
  [
    group("edge", { tls: "internal", notesHostname: "notes" }),
    "hearth:edge.notesHostname must be a host name in lower case such as hearth.example.org: npx pulumi config set --path hearth:edge.notesHostname notes.example.org",
  ],
  [
    group("edge", { tls: "acme", hostname: "h.example.org" }),
    "hearth:edge.email is required (edge.tls is acme): npx pulumi config set --path hearth:edge.email you@example.org",
  ],
  [
    group("edge", { tls: "acme", hostname: "h.example.org", email: "me" }),
    "hearth:edge.email must be a mail address, which the certificate authority requires: npx pulumi config set --path hearth:edge.email you@example.org",
  ],
  [
    group("edge", { tls: "acme", hostname: "h.example.org", email: 3 }),
    "hearth:edge.email must be a mail address, which the certificate authority requires: npx pulumi config set --path hearth:edge.email you@example.org",
  ],
  [
    { edge: "tls" },
    "hearth:edge must be a group of settings: npx pulumi config rm hearth:edge",
  ],
  ...["none", "-----BEGIN CERTIFICATE-----\nMIIB"].map(
    (edgeCertificate) =>
      [
        { edgeCertificate },
        "hearth:edgeCertificate must be a PEM certificate chain: npx pulumi config set hearth:edgeCertificate < fullchain.pem",
      ] as const,
  ),
  [
    ownCertificate({ cert: chain.cert, key: otherChain.key }, {}),
    "hearth:edgeKey is not the key of edgeCertificate: cat privkey.pem | npx pulumi config set --secret hearth:edgeKey",
  ],
  [
    ownCertificate(chain, { notesHostname: "notes.example.org" }),
    "hearth:edgeCertificate is not valid for notes.example.org: npx pulumi config set hearth:edgeCertificate < fullchain.pem",
  ],
  [
    // Browsers ignore the common name.
    ownCertificate(makeSelfSigned(tomorrow), {}),
    "hearth:edgeCertificate is not valid for hearth.example.org: npx pulumi config set hearth:edgeCertificate < fullchain.pem",
  ],
  [
    { edgeKey: "none" },
    "hearth:edgeKey must be a PEM private key without a passphrase: cat privkey.pem | npx pulumi config set --secret hearth:edgeKey",
  ],
  [
    { drainTimeout: "2 minutes" },
    "hearth:drainTimeout must be a duration such as 120s, 2m or 1h: npx pulumi config set hearth:drainTimeout 120s",
  ],
  [
    { drainTimeout: "0s" },
    "hearth:drainTimeout must be at least 1s, or every running call is cut off: npx pulumi config set hearth:drainTimeout 120s",
  ],
  [
    { drainTimeout: "99999h", drainNotice: "25h" },
    "hearth:drainTimeout must be at most 24h: npx pulumi config set hearth:drainTimeout 120s",
    "hearth:drainNotice must be at most 24h: npx pulumi config set hearth:drainNotice 5s",
  ],
  [
    { drainNotice: "0s" },
    "hearth:drainNotice must be longer than 2s: both edges must notice that a gateway is about to stop: npx pulumi config set hearth:drainNotice 5s",
  ],
  [
    { drainNotice: "2s" },
    "hearth:drainNotice must be longer than 2s: both edges must notice that a gateway is about to stop: npx pulumi config set hearth:drainNotice 5s",
  ],
  [
    { drainNotice: "now" },
    "hearth:drainNotice must be a duration such as 120s, 2m or 1h: npx pulumi config set hearth:drainNotice 5s",
  ],
  [
    // The address that a runner for all networks listens at.
    { localRunnerA: "http://0.0.0.0:11434" },
    "hearth:localRunnerA must not be a loopback address: in a container that is the container itself: npx pulumi config set hearth:localRunnerA http://192.168.1.10:11434",
  ],
  [
    { localRunnerA: "192.168.1.10" },
    "hearth:localRunnerA must be an address such as http://192.168.1.10:11434: npx pulumi config set hearth:localRunnerA http://192.168.1.10:11434",
  ],
  [
    { localRunnerB: "http://localhost:1" },
    "hearth:localRunnerB must not be a loopback address: in a container that is the container itself: npx pulumi config set hearth:localRunnerB http://192.168.1.11:1234/v1",
  ],
  [
    { gatewayConfig: "" },
    "hearth:gatewayConfig must be the path of a file: npx pulumi config set hearth:gatewayConfig config/gateway.local.yaml",
  ],
  [
    { supervisorConfig: "" },
    "hearth:supervisorConfig must be the path of a file: npx pulumi config set hearth:supervisorConfig config/supervisor.local.yaml",
  ],
  [
    { gatewayRole: "c" },
    "hearth:gatewayRole must be a or b: npx pulumi config set hearth:gatewayRole a",
  ],
  [
    { importRoles: "all" },
    "hearth:importRoles must be no, yes, or names of roles such as gateway_a,supervisor: npx pulumi config set hearth:importRoles no",
  ],
  [
    { importRoles: "gateway_c" },
    "hearth:importRoles must be no, yes, or names of roles such as gateway_a,supervisor: npx pulumi config set hearth:importRoles no",
  ],
  [
    { postgresVersion: "new" },
    "hearth:postgresVersion must be a version such as 18 or 18.6: npx pulumi config set hearth:postgresVersion 18",
  ],
  [
    { postgresVersion: "" },
    "hearth:postgresVersion must be a version such as 18 or 18.6: npx pulumi config set hearth:postgresVersion 18",
  ],
  [
    { postgresAt: "x" },
    "hearth:postgresAt must be a group of settings: npx pulumi config rm hearth:postgresAt",
  ],
  [
    group("postgresAt", { host: "", port: 5432 }),
    "hearth:postgresAt.host must be a host or address: npx pulumi config set --path hearth:postgresAt.host 127.0.0.1",
  ],
  [
    group("postgresAt", { host: "h", port: 0 }),
    "hearth:postgresAt.port must be a whole number from 1 to 65535: npx pulumi config set --path hearth:postgresAt.port 5432",
  ],
  [
    group("postgresAt", { host: "h" }),
    "hearth:postgresAt.port is required: npx pulumi config set --path hearth:postgresAt.port 5432",
  ],
  [
    { notesData: "srv" },
    "hearth:notesData must be volume, or an absolute path on the host: npx pulumi config set hearth:notesData volume",
  ],
  [
    { backupDirectory: "./b" },
    "hearth:backupDirectory must be volume, or an absolute path on the host: npx pulumi config set hearth:backupDirectory volume",
  ],
  ...["/etc", "/etc/hearth", "/srv", "/srv/", "/srv/../etc", "/srv/.."].flatMap(
    (path) =>
      ["notesData", "backupDirectory"].map(
        (setting) =>
          [
            { [setting]: path },
            `hearth:${setting} must be a separate directory such as /srv/hearth (no system directory, no ..), since it belongs to the user of the container: npx pulumi config set hearth:${setting} volume`,
          ] as const,
      ),
  ),
  [
    { notesOpenFiles: "many" },
    "hearth:notesOpenFiles must be a whole number from 1024 to 1048576: npx pulumi config set hearth:notesOpenFiles 65536",
  ],
  [
    { notesOpenFiles: "100" },
    "hearth:notesOpenFiles must be a whole number from 1024 to 1048576: npx pulumi config set hearth:notesOpenFiles 65536",
  ],
  [
    { notesUuid: undefined },
    "hearth:notesUuid is required: npx pulumi config set hearth:notesUuid $(openssl rand -hex 16)",
  ],
  [
    { notesUuid: "xyz" },
    "hearth:notesUuid must be 32 hexadecimal digits: npx pulumi config set hearth:notesUuid $(openssl rand -hex 16)",
  ],
  [
    { masterKeyPrevious: "sk-master-the-one-before-0123" },
    "hearth:masterKeyPreviousUntil is required with masterKeyPrevious, which must expire: npx pulumi config set hearth:masterKeyPreviousUntil 2027-01-31T12:00:00Z",
  ],
  [
    { masterKeyPreviousUntil: "tomorrow" },
    "hearth:masterKeyPreviousUntil must be a time such as 2027-01-31T12:00:00Z: npx pulumi config set hearth:masterKeyPreviousUntil 2027-01-31T12:00:00Z",
  ],
  [
    { providerKeys: "sk" },
    "hearth:providerKeys must be a group of settings: npx pulumi config rm hearth:providerKeys",
  ],
  [
    group("providerKeys", { OPENAI_API_KEY: "" }),
    "hearth:providerKeys.OPENAI_API_KEY must be the key itself: npx pulumi config set --secret --path hearth:providerKeys.OPENAI_API_KEY (it asks for the key)",
  ],
  [
    group("providerKeys", { openai: "x" }),
    "hearth:providerKeys.openai must be named like OPENAI_API_KEY: npx pulumi config rm --path hearth:providerKeys.openai",
  ],
  ...[
    "DATABASE_URL",
    "LOCAL_RUNNER_A_URL",
    "NODE_OPTIONS",
    "PROXY_MASTER_KEY_PREVIOUS",
  ].map(
    (name) =>
      [
        group("providerKeys", { [name]: "x" }),
        `hearth:providerKeys.${name} is a name that Hearth itself uses: choose another, such as OPENAI_API_KEY, and remove this one: npx pulumi config rm --path hearth:providerKeys.${name}`,
      ] as const,
  ),
  [
    group("alertSecrets", { REDIS_PASSWORD: "x" }),
    "hearth:alertSecrets.REDIS_PASSWORD is a name that Hearth itself uses: choose another, such as SLACK_URL, and remove this one: npx pulumi config rm --path hearth:alertSecrets.REDIS_PASSWORD",
  ],
  [
    group("alertSecrets", { SLACK_URL: "" }),
    "hearth:alertSecrets.SLACK_URL must be the secret itself: npx pulumi config set --secret --path hearth:alertSecrets.SLACK_URL (it asks for the secret)",
  ],
  [
    group("alertSecrets", { slack: "" }),
    "hearth:alertSecrets.slack must be named like SLACK_URL: npx pulumi config rm --path hearth:alertSecrets.slack",
  ],
  [
    group("providerKeys", { OPENAI_API_KEY: 5 }),
    "hearth:providerKeys.OPENAI_API_KEY must be the key itself: npx pulumi config set --secret --path hearth:providerKeys.OPENAI_API_KEY (it asks for the key)",
  ],
  [
    { masterKey: "with spaces in it, and long enough" },
    "hearth:masterKey must be at least 20 letters, digits, - and _ (it is part of addresses): openssl rand -hex 24 | npx pulumi config set --secret hearth:masterKey",
  ],
  [
    { redisPasswordPrevious: "x" },
    "hearth:redisPasswordPrevious must be at least 20 letters, digits, - and _ (it is part of addresses): openssl rand -hex 24 | npx pulumi config set --secret hearth:redisPasswordPrevious",
  ],
  [
    group("hosts", { a: right.a }),
    "hearth:hosts.b.docker is required: npx pulumi config set --path hearth:hosts.b.docker ssh://root@192.168.1.11",
    "hearth:hosts.b.address is required: npx pulumi config set --path hearth:hosts.b.address 192.168.1.11",
    "hearth:hosts.b.publish is required: npx pulumi config set --path 'hearth:hosts.b.publish[0]' 192.168.1.11",
  ],
  [
    { drainTimout: "5s" },
    'hearth: unknown setting "drainTimout" (did you mean "drainTimeout"?): npx pulumi config rm hearth:drainTimout',
  ],
  [
    group("edge", { tls: "acme", email: "you@example.org" }),
    "hearth:edge.hostname is required (edge.tls is acme): npx pulumi config set --path hearth:edge.hostname hearth.example.org",
  ],
  [
    group("edge", { tls: "files", hostname: "hearth.example.org" }),
    "hearth:edgeCertificate is required (edge.tls is files): npx pulumi config set hearth:edgeCertificate < fullchain.pem",
    "hearth:edgeKey is required (edge.tls is files): cat privkey.pem | npx pulumi config set --secret hearth:edgeKey",
  ],
  [
    { offsiteTarget: "b2:backups" },
    "hearth:offsiteIdentity is required with offsiteTarget: npx hearth offsite key --new | npx pulumi config set --secret hearth:offsiteIdentity",
    "hearth:offsiteRcloneConfig is required with offsiteTarget: cat rclone.conf | npx pulumi config set --secret hearth:offsiteRcloneConfig",
  ],
  [
    { offsiteTarget: "--config:backups" },
    "hearth:offsiteTarget must be REMOTE:PATH in rclone's syntax: npx pulumi config set hearth:offsiteTarget nas:hearth",
  ],
  [
    { offsiteTarget: "backups" },
    "hearth:offsiteTarget must be REMOTE:PATH in rclone's syntax: npx pulumi config set hearth:offsiteTarget nas:hearth",
  ],
  [
    { offsiteIdentity: "age1public" },
    "hearth:offsiteIdentity must be an age identity, as printed by `npx hearth offsite key --new`: npx hearth offsite key --new | npx pulumi config set --secret hearth:offsiteIdentity",
  ],
  [
    { offsiteRcloneConfig: "rclone.conf" },
    "hearth:offsiteRcloneConfig must be the content of an rclone.conf: cat rclone.conf | npx pulumi config set --secret hearth:offsiteRcloneConfig",
  ],
  [
    group("edge", { hostname: "hearth.example.org" }),
    "hearth:edge.tls is none, but a host name is set, which is served with a certificate: npx pulumi config set --path hearth:edge.tls internal",
  ],
  [
    group("edge", { notesHostname: "notes.example.org" }),
    "hearth:edge.tls is none, but a host name is set, which is served with a certificate: npx pulumi config set --path hearth:edge.tls internal",
  ],
  [
    group("edge", {
      tls: "internal",
      hostname: "hearth.example.org",
      notesHostname: "hearth.example.org",
    }),
    "hearth:edge.notesHostname is the gateway's host name; the notes need a separate one: npx pulumi config set --path hearth:edge.notesHostname notes.example.org",
  ],
  ...["yes", "{}", '{"of":"salt","settings":{},"old":""}'].map(
    (rotation) =>
      [
        { rotation },
        "hearth:rotation is not what `npm run deploy -- rotate` stores: restore it from a backup of the stack's file, or remove it and rotate again: npx pulumi config rm hearth:rotation",
      ] as const,
  ),
];

/** Every generated secret. */
const passwords = Object.keys(configSchema.shape).filter(
  (name) =>
    secretFields.includes(name) &&
    !/^(edgeKey|caKey|rotation|providerKeys|alertSecrets|offsite\w+)$/.test(
      name,
    ),
);

function errorsOf(
  changes: Changes,
  isSecret: (key: string) => boolean = (key) => secretFields.includes(key),
): readonly string[] {
  const values = Object.entries({ ...validConfig, ...changes }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const read = readConfig({ values: Object.fromEntries(values), isSecret });
  return read.ok ? [] : read.errors;
}

test.each(
  MISTAKES.map(([changes, ...sentences]) => ({
    mistake: JSON.stringify(changes),
    changes,
    sentences,
  })),
)("$mistake", ({ changes, sentences }) => {
  expect(errorsOf(changes)).toEqual(sentences);
});

test("a wildcard covers both host names", () => {
  const names = { notesHostname: "notes.example.org" };
  expect(errorsOf(ownCertificate(wildcard, names))).toEqual([]);
});

test.each(passwords)("%s: too short, in clear, or missing", (name) => {
  const fix = `openssl rand -hex 24 | npx pulumi config set --secret hearth:${name}`;
  expect(errorsOf({ [name]: "short" })).toContain(
    `hearth:${name} must be at least 20 letters, digits, - and _ (it is part of addresses): ${fix}`,
  );
  expect(
    errorsOf(
      {
        [name]: "sk-0123456789abcdef0123",
        masterKeyPreviousUntil: "2027-01-31T12:00:00Z",
      },
      (key) => key !== name && secretFields.includes(key),
    ),
  ).toEqual([
    `hearth:${name} is stored in plain text; change it, then store it encrypted: ${fix}`,
  ]);
  expect(errorsOf({ [name]: undefined })).toEqual(
    name.endsWith("Previous") ? [] : [`hearth:${name} is required: ${fix}`],
  );
});

test("the check of the hosts rejects one port of two services", () => {
  const read = readHostSettings({
    ...validConfig,
    ports: JSON.stringify({ redis: 5432 }),
  });
  expect(read).toEqual({
    ok: false,
    errors: [
      "hearth:ports.redis is 5432, which ports.postgres has too: npx pulumi config set --path hearth:ports.redis 6379",
    ],
  });
});

test.each<Changes>([
  // No HTTPS at the edge.
  group("ports", { console: 443 }),
  // On different hosts.
  {
    ...group("ports", { postgres: 6379 }),
    ...group("placement", { redis: "b" }),
  },
  // At different addresses of host A.
  {
    ...group("ports", { notes: 5432 }),
    ...hosts({ publish: ["192.168.1.10"] }),
  },
])(
  "two services may have the same port where they do not meet: %j",
  (changes) => expect(errorsOf(changes)).toEqual([]),
);

test("there is a mistake for every setting", () => {
  const tried = new Set([
    ...MISTAKES.flatMap(([changes]) => Object.keys(changes)),
    ...passwords,
  ]);
  expect(
    Object.keys(configSchema.shape).filter((name) => !tried.has(name)),
  ).toEqual([]);
});
