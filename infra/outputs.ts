import type { Output } from "@pulumi/pulumi";
import type { HearthConfig, HostName } from "./config/config-schema.ts";
import type { ProgramConfig } from "./config/program-config.ts";
import { typedDocker } from "./engine.ts";
import { bracketed } from "./hosts.ts";
import { containerName } from "./names.ts";
import { isPrivateAddress } from "../core/network-addresses.ts";

/** The output of `pulumi stack output`; secrets only with --show-secrets. */
export interface StackOutputs {
  /** For clients of OpenAI's API: the addresses of each host's edge; on Kubernetes by host name, else inside the cluster. */
  readonly gateway: readonly string[];
  /** For Obsidian's Self-hosted LiveSync; none without notes in the cluster. */
  readonly notes: readonly string[];
  /** Status pages; user `operator`. */
  readonly supervisor: readonly string[];
  readonly nextCommands: readonly string[];
  readonly masterKey: Output<string>;
  readonly operatorPassword: Output<string>;
  readonly notesAdminPassword: Output<string>;
}

export function describeStack(config: ProgramConfig): StackOutputs {
  const [gateway = "", ...others] = gatewayAddresses(config);
  // The supervisor on Postgres' host runs the jobs and maintains the vaults.
  const { docker: endpoint, sshOpts } = config.hosts[config.placement.postgres];
  const hearth = (options: string, command: string) =>
    typedDocker(
      { endpoint, sshOpts },
      `exec ${options}${containerName(config, "supervisor")} hearth ${command}`,
    );
  return {
    gateway: [gateway, ...others].map((address) => `${address}/v1`),
    notes: notesAddresses(config),
    supervisor: (["a", "b"] as const).flatMap((host) =>
      supervisorAddresses(config, host),
    ),
    nextCommands: [
      "npx pulumi stack output --show-secrets masterKey",
      `curl ${gateway}/key/generate -H "Authorization: Bearer $(npx pulumi stack output --show-secrets masterKey)" -d '{"user_id": "me", "max_budget": 1}'`,
      hearth("", "status"),
      hearth("", "open"),
      hearth("-it ", "notes setup-uri notes"),
    ],
    masterKey: config.masterKey,
    operatorPassword: config.operatorPassword,
    notesAdminPassword: config.notesAdminPassword,
  };
}

type Addressed = Pick<HearthConfig, "hosts" | "edge" | "ports">;

/** Addresses of the gateway for programs, best first. */
export function gatewayAddresses(config: Addressed): readonly string[] {
  const { hostname } = config.edge;
  return [
    ...(hostname === undefined ? [] : [httpsUrl(config, hostname)]),
    ...publishedUrls(config, config.ports.edge),
  ];
}

/** Addresses of the notes store for devices, best first. */
export function notesAddresses(config: Addressed): readonly string[] {
  const { notesHostname } = config.edge;
  return [
    ...(notesHostname === undefined ? [] : [httpsUrl(config, notesHostname)]),
    ...publishedUrls(config, config.ports.notes),
  ];
}

/** Addresses of a host's supervisor for browsers, best first. */
export function supervisorAddresses(
  config: Addressed,
  host: HostName,
): readonly string[] {
  return urlsOn(config, host, "https", config.ports.console);
}

/** For a name that the edges serve with a certificate. */
export function httpsUrl(
  { ports: { edgeTls } }: Pick<HearthConfig, "ports">,
  name: string,
): string {
  return `https://${name}${edgeTls === 443 ? "" : `:${edgeTls}`}`;
}

function publishedUrls(config: Addressed, port: number): readonly string[] {
  return (["a", "b"] as const).flatMap((host) =>
    urlsOn(config, host, "http", port),
  );
}

function urlsOn(
  { hosts }: Addressed,
  host: HostName,
  scheme: "http" | "https",
  port: number,
): readonly string[] {
  return hosts[host].publish
    .filter(isPrivateAddress)
    .map((address) => `${scheme}://${bracketed(address)}:${port}`);
}
