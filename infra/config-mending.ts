import { secretFields } from "./config-schema.ts";

/** A value that would be right, as a person types it; $(…) is made by the shell. */
const examples: Readonly<Record<string, string>> = {
  "hosts.*.docker": "ssh://root@192.168.1.1*",
  "hosts.*.address": "192.168.1.1*",
  "hosts.*.publish": "192.168.1.1*",
  "hosts.*.socket": "/var/run/docker.sock",
  "hosts.*.sshOpts": "-oControlMaster=auto",
  "placement.*": "a",
  "memory.postgres": "1024",
  "memory.redis": "512",
  "memory.gateway": "512",
  "memory.supervisor": "256",
  "images.*": "NAME:TAG@sha256:DIGEST",
  imagesWithoutDigest: "refuse",
  "edge.tls": "internal",
  "edge.hostname": "hearth.example.org",
  "edge.notesHostname": "notes.example.org",
  "edge.email": "you@example.org",
  edgeCertificate: '"$(cat fullchain.pem)"',
  drainTimeout: "120s",
  drainNotice: "5s",
  localRunnerA: "http://192.168.1.10:11434",
  localRunnerB: "http://192.168.1.11:1234/v1",
  gatewayConfig: "config/gateway.local.yaml",
  supervisorConfig: "config/supervisor.local.yaml",
  gatewayRole: "a",
  importRoles: "no",
  masterKeyPreviousUntil: "2027-01-31T12:00:00Z",
  postgresVersion: "18",
  "postgresAt.host": "127.0.0.1",
  "postgresAt.port": "5432",
  notesData: "volume",
  backupDirectory: "volume",
  offsiteTarget: "nas:hearth",
  notesOpenFiles: "65536",
  notesUuid: "$(openssl rand -hex 16)",
};

/** What prints a secret; the others get a random one. */
const sources: Readonly<Record<string, string>> = {
  edgeKey: "cat privkey.pem",
  offsiteIdentity: "npx hearth offsite key --new",
  offsiteRcloneConfig: "cat rclone.conf",
  caKey: "openssl genrsa 3072",
};

/**
 * The exact command that sets a field to something right. A secret is piped in, or asked for where only the operator has it:
 * arguments are seen by everybody on the machine.
 */
export function mendingCommand(path: readonly string[]): string {
  const [top = ""] = path;
  if (top === "providerKeys")
    return `npx pulumi config set --secret --path hearth:providerKeys.${path[1] ?? "OPENAI_API_KEY"} (it asks for the key)`;
  if (top === "alertSecrets")
    return `npx pulumi config set --secret --path hearth:alertSecrets.${path[1] ?? "SLACK_URL"} (it asks for the secret)`;
  if (secretFields.includes(top))
    return `${sources[top] ?? "openssl rand -hex 24"} | npx pulumi config set --secret hearth:${top}`;
  const example = exampleOf(path);
  // A list is set element by element.
  const target =
    path.length === 3 && (path[2] === "publish" || path[2] === "sshOpts")
      ? [...path, "0"]
      : path;
  const key = target.reduce((text, step) =>
    /^\d+$/.test(step) ? `${text}[${step}]` : `${text}.${step}`,
  );
  return `npx pulumi config set ${target.length > 1 ? "--path " : ""}${quote(`hearth:${key}`)} ${example.startsWith("-") ? "-- " : ""}${example}`;
}

/** The exact command that takes a setting out. */
export function removingCommand(path: readonly string[]): string {
  return `npx pulumi config rm ${path.length > 1 ? "--path " : ""}hearth:${path.join(".")}`;
}

function exampleOf(path: readonly string[]): string {
  const [top = "", second = "", third = ""] = path;
  if (top === "hosts")
    return (examples[`hosts.*.${third}`] ?? "VALUE").replace(
      "*",
      second === "b" ? "1" : "0",
    );
  return (
    examples[path.join(".")] ??
    examples[`${top}.${second}`] ??
    examples[`${top}.*`] ??
    examples[top] ??
    "VALUE"
  );
}

/** zsh takes brackets as a pattern. */
function quote(text: string): string {
  return /[[\]]/.test(text) ? `'${text}'` : text;
}

/** The known name that a mistyped one is closest to; undefined when none is near. */
export function nearestName(
  name: string,
  known: readonly string[],
): string | undefined {
  const nearest = known
    .map((each) => ({
      each,
      steps: distance(name.toLowerCase(), each.toLowerCase()),
    }))
    .toSorted((x, y) => x.steps - y.steps)[0];
  return nearest !== undefined &&
    nearest.steps <= Math.max(1, Math.floor(name.length / 3))
    ? nearest.each
    : undefined;
}

/** Levenshtein's. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries())
      next.push(
        Math.min(
          (row[j + 1] ?? 0) + 1,
          (next[j] ?? 0) + 1,
          (row[j] ?? 0) + (letter === other ? 0 : 1),
        ),
      );
    row = next;
  }
  return row[to.length] ?? 0;
}
