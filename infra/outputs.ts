import { secret, type Output } from "@pulumi/pulumi";
import type { HearthConfig, HostName } from "./config.ts";
import { ports } from "./hosts.ts";

/** What `pulumi stack output` shows; secrets only with --show-secrets. */
export interface StackOutputs {
  /** For anything that speaks OpenAI's API: the addresses of each host's edge. */
  readonly gateway: readonly string[];
  /** For Obsidian's Self-hosted LiveSync. */
  readonly notes: readonly string[];
  /** Status pages; user `operator`. */
  readonly supervisor: readonly string[];
  readonly nextCommands: readonly string[];
  readonly masterKey: Output<string>;
  readonly operatorPassword: Output<string>;
  readonly notesAdminPassword: Output<string>;
}

export function describeStack(config: HearthConfig): StackOutputs {
  const { edge } = config;
  const urls = (port: number, path = "") => publishedUrls(config, port, path);
  const gateway = [
    ...(edge.hostname === undefined ? [] : [`https://${edge.hostname}/v1`]),
    ...urls(ports.edge, "/v1"),
  ];
  return {
    gateway,
    notes: notesAddresses(config),
    supervisor: urls(ports.supervisor),
    nextCommands: [
      "pulumi stack output --show-secrets masterKey",
      `curl ${(gateway[0] ?? "").replace(/\/v1$/, "")}/key/generate -H "Authorization: Bearer $MASTER_KEY" -d '{"user_id": "me", "max_budget": 1}'`,
      "docker exec hearth-supervisor hearth status",
      "docker exec -it hearth-supervisor hearth notes setup-uri notes",
    ],
    masterKey: secret(config.masterKey),
    operatorPassword: secret(config.operatorPassword),
    notesAdminPassword: secret(config.notesAdminPassword),
  };
}

/** Where devices reach the notes store, the best first. */
export function notesAddresses(config: HearthConfig): readonly string[] {
  const { notesHostname } = config.edge;
  return [
    ...(notesHostname === undefined ? [] : [`https://${notesHostname}`]),
    ...publishedUrls(config, ports.notes),
  ];
}

function publishedUrls(
  { hosts }: HearthConfig,
  port: number,
  path = "",
): readonly string[] {
  return (["a", "b"] as const).flatMap((host: HostName) =>
    hosts[host].publish.map(
      (address) =>
        `http://${address.includes(":") ? `[${address}]` : address}:${port}${path}`,
    ),
  );
}
