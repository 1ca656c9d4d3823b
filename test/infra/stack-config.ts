import { generateKeyPairSync } from "node:crypto";
import type { ConfigMap } from "@pulumi/pulumi/automation/config.js";
import { secretFields } from "../../infra/config/config-schema.ts";

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });

/** A valid configuration of the stack, as Pulumi passes it: plain values as text, objects as JSON. */
export const validConfig: Readonly<Record<string, string>> = {
  hosts: JSON.stringify({
    a: {
      docker: "ssh://root@192.168.1.10",
      address: "10.8.0.1",
      publish: ["192.168.1.10", "10.8.0.1"],
    },
    b: {
      docker: "ssh://root@192.168.1.11",
      address: "10.8.0.2",
      publish: ["192.168.1.11"],
    },
  }),
  localRunnerA: "http://192.168.1.10:11434",
  localRunnerB: "http://192.168.1.11:1234/v1",
  // Independent of this checkout's `config/gateway.local.yaml`.
  gatewayConfig: "config/gateway.yaml",
  notesUuid: "00112233445566778899aabbccddeeff",
  masterKey: "sk-master-0123456789abcdef",
  saltKey: "salt-0123456789abcdef0123",
  postgresPassword: "postgres-0123456789abcdef",
  gatewayPassword: "gateway-0123456789abcdef",
  supervisorPassword: "supervisor-0123456789abcdef",
  backupPassword: "backup-0123456789abcdef",
  redisPassword: "redis-0123456789abcdef",
  notesAdminPassword: "notes-0123456789abcdef",
  notesCookieSecret: "cookie-0123456789abcdef",
  operatorPassword: "operator-0123456789abcdef",
  caKey: String(privateKey.export({ type: "pkcs8", format: "pem" })),
  providerKeys: JSON.stringify({ OPENAI_API_KEY: "sk-openai-0123456789" }),
  alertSecrets: JSON.stringify({
    SLACK_URL: "https://hooks.example.org/slack-0123456789",
  }),
};

/** Every secret in it, as clear text. */
export const secretsOf = (config: Readonly<Record<string, string>>) =>
  Object.entries(config).flatMap(([key, value]) =>
    key === "providerKeys" || key === "alertSecrets"
      ? Object.values(JSON.parse(value) as Record<string, string>)
      : /Key$|Password$|Secret$/.test(key)
        ? [value]
        : [],
  );

/** Settings of a stack as Pulumi's engine has them; `secrets` are the names of those that it encrypts. */
export function engineSettings(
  settings: Readonly<Record<string, string>>,
  secrets: readonly string[] = secretFields,
): ConfigMap {
  return Object.fromEntries(
    Object.entries(settings).map(([key, value]) => [
      `hearth:${key}`,
      { value, secret: secrets.includes(key) },
    ]),
  );
}
