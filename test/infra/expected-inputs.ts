import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { issueCertificates } from "../../infra/certificates.ts";
import { readConfig } from "../../infra/config/config.ts";
import { program } from "../../infra/index.ts";
import { inProject } from "../../infra/project-files.ts";
import { containersOf, listOf, registerBy } from "./registered.ts";
import { validConfig } from "./stack-config.ts";

interface RegisteredContainer {
  /** Without the files. */
  readonly inputs: Readonly<Record<string, unknown>>;
  /** "MODE CONTENT" by path. */
  readonly files: Readonly<Record<string, string>>;
}

export type RegisteredContainers = Readonly<
  Record<string, RegisteredContainer>
>;

/** Registers a program, by default the whole one, and returns its containers by resource name. */
export async function registerContainers(
  config = validConfig,
  anyProgram: () => Promise<unknown> = program,
): Promise<RegisteredContainers> {
  const { resources } = await registerBy(anyProgram, config);
  return Object.fromEntries(
    containersOf(resources).map(({ name, inputs: { uploads, ...inputs } }) => [
      name,
      {
        inputs,
        files: Object.fromEntries(
          listOf(uploads).map(({ file, permissions, content }) => [
            file,
            `${String(permissions)} ${String(content)}`,
          ]),
        ),
      },
    ]),
  );
}

/** Values of the stack registered here. */
export async function expectedCertificates(): ReturnType<
  typeof issueCertificates
> {
  const read = readConfig({ values: validConfig, isSecret: () => true });
  if (!read.ok) {
    throw new Error(read.errors.join());
  }
  return issueCertificates(read.config);
}

/** Used for a container that was not registered. */
export const none: RegisteredContainer = { inputs: {}, files: {} };

/** Inputs of every container. */
export const always = {
  securityOpts: ["no-new-privileges:true"],
  capabilities: { drops: ["ALL"] },
  ulimits: [{ name: "core", soft: 0, hard: 0 }],
  restart: "unless-stopped",
  logDriver: "json-file",
  logOpts: { "max-size": "10m", "max-file": "3" },
  wait: true,
  labels: [
    {
      label: "hearth.config",
      value: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
    },
    { label: "hearth.stack", value: "hearth/home" },
  ],
};

/** A port published at one address. */
export const tcp = (ip: string, port: number) => ({
  ip,
  internal: port,
  external: port,
  protocol: "tcp",
});

export const volume = (volumeName: string, containerPath: string) => ({
  volumeName,
  containerPath,
  readOnly: false,
});

export const asksHttp = (port: number, path: string, otherwise = "") => [
  "CMD",
  "bash",
  "-c",
  String.raw`exec 3<>/dev/tcp/127.0.0.1/${port} && printf 'GET ${path} HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]${otherwise}`,
];

/** A file of this repository. */
export const text = (path: string) => readFileSync(inProject(path), "utf8");
