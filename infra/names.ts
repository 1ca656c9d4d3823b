import { DEFAULT_STACK } from "../core/stack-flag.ts";

/** Names of a stack's resources on a host. Two stacks can share a host if their prefixes and ports differ. */
export interface StackNames {
  /** Prefix of its containers and volumes, and name of its network. */
  readonly prefix: string;
  /** PROJECT/STACK, as a label: a stack never touches another stack's containers or volumes. */
  readonly stack: string;
}

/** Services with a container; also the suffix of its name. */
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

/** Data kept in volumes; also the suffix of the volume's name. */
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

/** Network on which the containers of one host reach each other by alias. */
export function networkName({ prefix }: Pick<StackNames, "prefix">): string {
  return prefix;
}

/** Internal network of the supervisor and the socket proxy. */
export function socketNetworkName({
  prefix,
}: Pick<StackNames, "prefix">): string {
  return `${prefix}-socket`;
}

/** Label of containers and volumes: the stack that owns them. */
export const STACK_LABEL = "hearth.stack";

/** The stack's name for commands in messages of its programs; none for the default one, which commands need not name. */
export function stackVariable({
  stack,
}: Pick<StackNames, "stack">): Readonly<Record<string, string>> {
  const name = stack.split("/").at(-1) ?? stack;
  return name === DEFAULT_STACK ? {} : { HEARTH_STACK: name };
}
