import { randomBytes } from "node:crypto";

export interface Question {
  readonly flag: string;
  readonly ask: string;
  /** What is offered, from the answers so far. */
  readonly initial: (answers: Readonly<Record<string, string>>) => string;
}

const hostPart = (endpoint: string | undefined): string =>
  /^(?:ssh|tcp):\/\/(?:[^@/]+@)?([^:/]+)/.exec(endpoint ?? "")?.[1] ?? "";

/** Everything that has no good default, in the order of asking. */
export const questions: readonly Question[] = [
  {
    flag: "docker-a",
    ask: "Docker on host A: ssh://USER@HOST, or unix:///var/run/docker.sock when this machine is host A",
    initial: () => "unix:///var/run/docker.sock",
  },
  {
    flag: "address-a",
    ask: "Address of host A that host B and you reach (LAN or VPN)",
    initial: (answers) => hostPart(answers["docker-a"]),
  },
  {
    flag: "publish-a",
    ask: "Addresses of host A for people and devices, separated by commas",
    initial: (answers) => answers["address-a"] ?? "",
  },
  {
    flag: "docker-b",
    ask: "Docker on host B: ssh://USER@HOST",
    initial: () => "",
  },
  {
    flag: "address-b",
    ask: "Address of host B that host A and you reach (LAN or VPN)",
    initial: (answers) => hostPart(answers["docker-b"]),
  },
  {
    flag: "publish-b",
    ask: "Addresses of host B for people and devices, separated by commas",
    initial: (answers) => answers["address-b"] ?? "",
  },
  {
    flag: "runner-a",
    ask: "Local model runner at host A, as containers reach it, e.g. http://192.168.1.10:11434 (empty: none)",
    initial: () => "",
  },
  {
    flag: "runner-b",
    ask: "Local model runner at host B, e.g. http://192.168.1.11:1234/v1 (empty: none)",
    initial: () => "",
  },
];

/** Every secret of the stack, new: 192 bits each, in characters that may stand in an address. */
export function makeSecrets(): Readonly<Record<string, string>> {
  const random = () => randomBytes(24).toString("base64url");
  return {
    masterKey: `sk-${random()}`,
    saltKey: random(),
    postgresPassword: random(),
    gatewayPassword: random(),
    supervisorPassword: random(),
    backupPassword: random(),
    redisPassword: random(),
    notesAdminPassword: random(),
    notesCookieSecret: random(),
    operatorPassword: random(),
    notesUuid: randomBytes(16).toString("hex"),
  };
}
