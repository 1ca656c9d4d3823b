/** What a stack calls its own on a host. Two stacks share a host when their prefixes and ports differ. */
export interface StackNames {
  /** Before the names of its containers and volumes, and the name of its network. */
  readonly prefix: string;
  /** PROJECT/STACK: in a label, so that one stack never takes another's containers or volumes for its own. */
  readonly stack: string;
}

/** Services that have a container; the word is the end of its name. */
export const CONTAINER_SERVICES = [
  "couchdb",
  "edge",
  "gateway",
  "postgres",
  "redis",
  "socket-proxy",
  "supervisor",
  "tls",
] as const;
export type ContainerService = (typeof CONTAINER_SERVICES)[number];

export function containerName(
  { prefix }: Pick<StackNames, "prefix">,
  service: ContainerService,
): string {
  return `${prefix}-${service}`;
}

/** What volumes keep; the word is the end of the name. */
export const KEPT_DATA = [
  "backups",
  "certificates",
  "journal",
  "notes",
  "postgres",
  "redis",
  "supervisor",
] as const;
export type KeptData = (typeof KEPT_DATA)[number];

export function volumeName(
  { prefix }: Pick<StackNames, "prefix">,
  data: KeptData,
): string {
  return `${prefix}-${data}`;
}

/** Where containers of one host talk to each other by alias. */
export function networkName({ prefix }: Pick<StackNames, "prefix">): string {
  return prefix;
}

/** Where the supervisor talks to the socket proxy: no way out of it. */
export function socketNetworkName({
  prefix,
}: Pick<StackNames, "prefix">): string {
  return `${prefix}-socket`;
}

/** On containers and volumes: whose they are. */
export const STACK_LABEL = "hearth.stack";
