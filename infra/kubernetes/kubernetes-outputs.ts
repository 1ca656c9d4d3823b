import type { StackOutputs } from "../outputs.ts";
import type { KubernetesProgramConfig } from "./chart-values.ts";
import { typedHelm, typedKubectl } from "./kubectl.ts";
import { SUPERVISOR_POD } from "./release-name.ts";

export function describeKubernetesStack(
  config: KubernetesProgramConfig,
): StackOutputs {
  const { edge, notes } = config;
  const gateway = addressOf(config, edge.hostname, "gateway", 4000);
  const supervisor = typedKubectl(
    config.cluster,
    `exec ${SUPERVISOR_POD} -- hearth`,
  );
  return {
    gateway: [`${gateway}/v1`],
    notes:
      notes.mode === "none"
        ? []
        : [notes.url ?? addressOf(config, edge.notesHostname, "notes", 5984)],
    supervisor: [
      addressOf(config, edge.supervisorHostname, "supervisor", 4080),
    ],
    nextCommands: [
      "npx pulumi stack output --show-secrets masterKey",
      ...(edge.hostname === undefined
        ? [
            typedKubectl(
              config.cluster,
              "port-forward service/hearth-gateway 4000",
            ),
          ]
        : []),
      `curl ${edge.hostname === undefined ? "http://127.0.0.1:4000" : gateway}/key/generate -H "Authorization: Bearer $(npx pulumi stack output --show-secrets masterKey)" -d '{"user_id": "me", "max_budget": 1}'`,
      `${supervisor} status`,
      typedHelm(config.cluster, "test hearth"),
    ],
    masterKey: config.masterKey,
    operatorPassword: config.operatorPassword,
    notesAdminPassword: config.notesAdminPassword,
  };
}

function addressOf(
  { edge, cluster }: KubernetesProgramConfig,
  hostname: string | undefined,
  service: string,
  port: number,
): string {
  if (hostname === undefined) {
    return `http://hearth-${service}.${cluster.namespace}.svc:${port}`;
  }
  // Behind a Gateway of the Gateway API, its listener has the certificate.
  const isPlain = edge.tls === "none" && edge.gatewayRef === undefined;
  return `${isPlain ? "http" : "https"}://${hostname}`;
}
