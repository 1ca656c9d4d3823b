import { generateKeyPairSync, randomBytes } from "node:crypto";

export interface Question {
  readonly flag: string;
  readonly ask: string;
  /** Default, derived from the answers so far. */
  readonly initial: (answers: Readonly<Record<string, string>>) => string;
}

/** Empty for an address of IPv6, in brackets: between the hosts, containers use IPv4. */
const hostPart = (endpoint: string | undefined): string =>
  /^(?:ssh|tcp):\/\/(?:[^@/]+@)?([^:/@[]+)(?::\d+)?$/.exec(
    endpoint ?? "",
  )?.[1] ?? "";

/** Settings without a good default, in the order of the prompts. */
export const QUESTIONS: readonly Question[] = [
  {
    flag: "docker-a",
    ask: "Docker on host A: ssh://USER@HOST, or unix:///var/run/docker.sock if this machine is host A",
    initial: () => "unix:///var/run/docker.sock",
  },
  {
    flag: "address-a",
    ask: "Address of host A, reachable from host B and this machine (LAN or VPN)",
    initial: (answers) => hostPart(answers["docker-a"]),
  },
  {
    flag: "publish-a",
    ask: "Addresses of host A for users and devices, comma-separated",
    initial: (answers) => answers["address-a"] ?? "",
  },
  {
    flag: "docker-b",
    ask: "Docker on host B: ssh://USER@HOST",
    initial: () => "",
  },
  {
    flag: "address-b",
    ask: "Address of host B, reachable from host A and this machine (LAN or VPN)",
    initial: (answers) => hostPart(answers["docker-b"]),
  },
  {
    flag: "publish-b",
    ask: "Addresses of host B for users and devices, comma-separated",
    initial: (answers) => answers["address-b"] ?? "",
  },
  {
    flag: "runner-a",
    ask: "URL of the local model runner on host A, as seen from containers, e.g. http://192.168.1.10:11434 (empty: none)",
    initial: () => "",
  },
  {
    flag: "runner-b",
    ask: "URL of the local model runner on host B, e.g. http://192.168.1.11:1234/v1 (empty: none)",
    initial: () => "",
  },
];

/** The answers from which `settingsOf` derived these settings. */
export function answersOf(
  settings: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const hosts = JSON.parse(settings["hosts"] ?? "{}") as Partial<Hosts>;
  const answers: Record<string, string | undefined> = {
    "runner-a": settings["localRunnerA"],
    "runner-b": settings["localRunnerB"],
  };
  for (const name of ["a", "b"] as const) {
    const { docker, address, publish } = hosts[name] ?? {};
    answers[`docker-${name}`] = docker;
    answers[`address-${name}`] = address;
    answers[`publish-${name}`] = publish?.join(", ");
  }
  return Object.fromEntries(
    Object.entries(answers).filter(
      (pair): pair is [string, string] => pair[1] !== undefined,
    ),
  );
}

/** The default for a question: the known answer, unless it was derived from another answer, which may have changed. */
export function offerFor(
  { flag, initial }: Question,
  answers: Readonly<Record<string, string>>,
  known: Readonly<Record<string, string>>,
): string {
  const before = known[flag];
  return before === undefined || before === initial(known)
    ? initial(answers)
    : before;
}

/** The settings for these answers, as Pulumi stores them: objects as JSON. Empty answers are omitted. */
export function settingsOf(
  answers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const host = (name: "a" | "b") => ({
    docker: answers[`docker-${name}`],
    address: answers[`address-${name}`],
    publish: (answers[`publish-${name}`] ?? "")
      .split(",")
      .map((each) => each.trim())
      .filter((each) => each !== ""),
  });
  const runner = (name: "A" | "B") => {
    const url = answers[`runner-${name.toLowerCase()}`] ?? "";
    return url === "" ? {} : { [`localRunner${name}`]: url };
  };
  return {
    hosts: JSON.stringify({ a: host("a"), b: host("b") }),
    ...runner("A"),
    ...runner("B"),
  };
}

/** Settings as Pulumi stores them, with the answered ones replaced; an empty runner is removed. */
export function withAnswers(
  settings: Readonly<Record<string, string>>,
  answers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const { hosts, ...rest } = settingsOf(answers);
  const given = JSON.parse(hosts ?? "{}") as Hosts;
  const known = JSON.parse(settings["hosts"] ?? "{}") as Partial<Hosts>;
  const merged = (name: "a" | "b") => {
    const { publish = [], ...own } = given[name];
    const before = known[name];
    return {
      ...before,
      ...own,
      // Most hosts have one address for everything.
      publish:
        publish.length > 0
          ? publish
          : (before?.publish ??
            (own.address === undefined ? [] : [own.address])),
    };
  };
  const kept = Object.entries(settings).filter(
    ([key]) =>
      !(key === "localRunnerA" && answers["runner-a"] === "") &&
      !(key === "localRunnerB" && answers["runner-b"] === ""),
  );
  return {
    ...Object.fromEntries(kept),
    ...rest,
    hosts: JSON.stringify({ a: merged("a"), b: merged("b") }),
  };
}

type Hosts = Record<
  "a" | "b",
  {
    readonly docker?: string;
    readonly address?: string;
    readonly publish?: readonly string[];
  }
>;

function newAuthorityKey(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 3072 });
  return String(privateKey.export({ type: "pkcs8", format: "pem" }));
}

/** New values for every secret of the stack: keys, and 192 random bits each in URL-safe characters. */
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
    caKey: newAuthorityKey(),
    notesUuid: randomBytes(16).toString("hex"),
  };
}
