import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runtime } from "@pulumi/pulumi";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { minimalKubernetesConfig } from "../test/infra/kubernetes-config.ts";
import { validConfig } from "../test/infra/stack-config.ts";
import { makeSelfSigned } from "../test/supervisor/self-signed.ts";
import { secretFields } from "./config/config-schema.ts";
import { checkPlainRun } from "./plain-run.ts";
import { stackProgram } from "./stack-program.ts";

function configure(settings: Readonly<Record<string, string>>): void {
  runtime.setAllConfig(
    Object.fromEntries(
      Object.entries(settings).map(([key, value]) => [`hearth:${key}`, value]),
    ),
    secretFields.map((key) => `hearth:${key}`),
  );
}

test.each([
  ["two hosts", validConfig],
  ["Kubernetes", minimalKubernetesConfig],
])(
  "a plain pulumi command on %s is rejected during a rotation",
  async (_kind, settings) => {
    const config = {
      ...settings,
      rotation: JSON.stringify({ of: "master", settings: {}, old: "" }),
    };
    configure(config);
    await expect(stackProgram(true)).rejects.toThrow(
      /^a rotation is unfinished; nothing was changed: `npm run deploy -- up --stack \w+` names the command that completes it\.$/,
    );
  },
);

const expired = makeSelfSigned(new Date("2026-11-20T12:00:00Z"), [
  "hearth.example.org",
]);

test.each([
  ["two hosts", validConfig],
  ["Kubernetes", minimalKubernetesConfig],
])(
  "a plain pulumi command on %s rejects an expired certificate",
  async (_kind, settings) => {
    configure({
      ...settings,
      edge: JSON.stringify({ tls: "files", hostname: "hearth.example.org" }),
      edgeCertificate: expired.cert,
      edgeKey: expired.key,
    });
    await expect(stackProgram(true)).rejects.toThrow(
      /\n {2}hearth:edgeCertificate expired on 2026-11-20.*: npx pulumi config set hearth:edgeCertificate < fullchain\.pem$/,
    );
  },
);

describe("a plain pulumi command compares the configuration with what runs on the hosts", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "hearth-plain-"));
    vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(directory, { recursive: true });
  });

  /** Fakes both hosts: their containers have these files, and the notes server answers a login with `status`. */
  function hostsWith(
    settings: Readonly<Record<string, string>>,
    status = 200,
  ): void {
    const ssh = join(directory, "ssh");
    writeFileSync(
      ssh,
      `#!/bin/sh
case "$*" in
  *HEARTH_SALT_KEY*) printf %s '${settings["saltKey"]}' ;;
  *10-hearth.ini*) echo 'uuid = ${settings["notesUuid"]}' ;;
  *"'node'"*) echo ${status} ;;
  *) exit 1 ;;
esac
`,
    );
    chmodSync(ssh, 0o755);
  }

  test.each([
    [
      { saltKey: "other-0123456789abcdef0123" },
      200,
      /^hearth:saltKey is another one than deployed.*; nothing was changed: set it back: ssh root@192\.168\.1\.10 docker exec hearth-gateway cat \/run\/hearth\/HEARTH_SALT_KEY \| npx pulumi config set --secret hearth:saltKey\.$/,
    ],
    [
      { notesUuid: "ffeeddccbbaa99887766554433221100" },
      200,
      /^hearth:notesUuid is another one than deployed.*; nothing was changed: set it back: npx pulumi config set hearth:notesUuid ffeeddccbbaa99887766554433221100\.$/,
    ],
    [
      {},
      401,
      /^hearth:notesAdminPassword is not the password of the notes server's admin; nothing was changed: /,
    ],
  ])("deployed with %j, login %d: rejected", async (other, status, message) => {
    hostsWith({ ...validConfig, ...other }, status);
    configure(validConfig);
    await expect(stackProgram(true)).rejects.toThrow(message);
  });

  test("a mistake in the gateway's file is rejected", async () => {
    hostsWith(validConfig);
    const gatewayConfig = join(directory, "gateway.yaml");
    writeFileSync(gatewayConfig, "general_settings: { workers: many }\n");
    configure({ ...validConfig, gatewayConfig });
    await expect(stackProgram(true)).rejects.toThrow(`${gatewayConfig}:1: `);
  });

  test("the deployed settings are accepted, and so are hosts that do not respond", async () => {
    const check = () =>
      checkPlainRun(
        { values: validConfig, isSecret: (key) => secretFields.includes(key) },
        "docker",
      );
    hostsWith(validConfig);
    await expect(check()).resolves.toBeUndefined();
    writeFileSync(join(directory, "ssh"), "#!/bin/sh\nexit 255\n");
    await expect(check()).resolves.toBeUndefined();
  });
});
