import { CONFIG_LABEL } from "./container.ts";
import {
  COMMAND_WITHIN_MS,
  dockerAt,
  outputLines,
  type StackEngine,
} from "./engine.ts";
import {
  containerName,
  CONTAINER_SERVICES,
  KEPT_DATA,
  STACK_LABEL,
  volumeName,
} from "./names.ts";
import { askPostgres } from "./postgres-socket.ts";

/** From stop signal to SIGKILL, for containers of which nothing else is known. */
const GRACE_SECONDS = 60;

/**
 * Stops and removes a container of this name that an interrupted `up` or a lost state left behind. It may serve calls, which it finishes
 * within `graceSeconds`. A container without Hearth's label is not touched and is an error.
 */
export async function removeLeftover(
  engine: StackEngine,
  name: string,
  graceSeconds = GRACE_SECONDS,
): Promise<void> {
  const [found] = await listContainers(engine, `name=^/${name}$`);
  if (found === undefined) {
    return;
  }
  refuseOtherStack(engine, [found]);
  if (!found.ours) {
    throw new Error(
      `${engine.endpoint} has a container named ${name} that Hearth did not create: rename or remove it, then run up again.`,
    );
  }
  await stopAndRemove(engine, [found.id], graceSeconds);
}

/**
 * Removes a network of this name that is not in the state: with two networks of one name Docker does not start any container on
 * it. Hearth's containers on it are not in the state either. An interrupted `up` leaves none, since it records networks first:
 * they belong to a stack of another state, which only `adopt` may take over and `destroy` remove.
 */
export async function removeLeftoverNetwork(
  engine: StackEngine,
  name: string,
  { withContainers }: { readonly withContainers: boolean },
): Promise<void> {
  const ids = outputLines(
    await dockerAt(engine, [
      "network",
      "ls",
      "--quiet",
      "--no-trunc",
      "--filter",
      `name=^${name}$`,
    ]),
  );
  for (const id of ids) {
    const attached = await listContainers(engine, `network=${id}`);
    refuseOtherStack(engine, attached);
    const foreign = attached.find(({ ours }) => !ours);
    if (foreign !== undefined) {
      throw new Error(
        `${engine.endpoint} has a network named ${name} that Hearth did not create or that other containers use: disconnect the container ${foreign.name} from it, then run up again.`,
      );
    }
    if (attached.length > 0 && !withContainers) {
      throw unknownStack(`${engine.endpoint}: ${namesOf(attached)}`);
    }
    await stopAndRemove(
      engine,
      attached.map((container) => container.id),
      GRACE_SECONDS,
    );
    await dockerAt(engine, ["network", "rm", id]);
  }
}

/** The error for containers on the hosts while the state is empty; `where` lists them by host. */
export function unknownStack(where: string): Error {
  return new Error(
    `the state is empty, but Hearth is running on the hosts (${where}); nothing was changed: set PULUMI_BACKEND_URL as for the \`up\`; or, if the state is lost, run \`npm run deploy -- adopt\` first.`,
  );
}

/** Drops a login role that is not in the state; anything it owns is reassigned to the owner's role. */
export async function removeLeftoverRole(
  engine: StackEngine,
  name: string,
): Promise<void> {
  const role = `"${name.replaceAll('"', '""')}"`;
  const found = await askPostgres(
    engine,
    `SELECT rolname FROM pg_roles WHERE rolname = '${name.replaceAll("'", "''")}';`,
  );
  if (found === "") {
    return;
  }
  await askPostgres(
    engine,
    `REASSIGN OWNED BY ${role} TO hearth_owner; DROP OWNED BY ${role}; DROP ROLE ${role};`,
  );
}

/** Throws one sentence if another stack has containers or volumes with this stack's names on the host. */
export async function rejectOtherStacks(engine: StackEngine): Promise<void> {
  const names = CONTAINER_SERVICES.map((each) => containerName(engine, each));
  const containers = await listContainers(engine, `label=${STACK_LABEL}`);
  refuseOtherStack(
    engine,
    containers.filter(({ name }) => names.includes(name)),
  );
  await rejectForeignVolumes(
    engine,
    KEPT_DATA.map((data) => volumeName(engine, data)),
  );
}

/** Throws for volumes of another stack. Volumes of older releases have no label and can only be this stack's. */
export async function rejectForeignVolumes(
  engine: StackEngine,
  names: readonly string[],
): Promise<void> {
  const lines = await dockerAt(engine, [
    "volume",
    "ls",
    "--filter",
    `label=${STACK_LABEL}`,
    "--format",
    `{{.Name}} {{.Label "${STACK_LABEL}"}}`,
  ]);
  for (const line of outputLines(lines)) {
    const [name = "", owner = ""] = line.split(" ");
    if (names.includes(name) && owner !== engine.stack) {
      throw otherStack(engine, owner, `the volume ${name}`);
    }
  }
}

interface Found {
  readonly id: string;
  readonly name: string;
  /** Created by Hearth. */
  readonly ours: boolean;
  /** The stack that owns it; "" if an older release created it. */
  readonly stack: string;
}

function refuseOtherStack(
  engine: StackEngine,
  containers: readonly Found[],
): void {
  const others = containers.filter(
    ({ stack }) => stack !== "" && stack !== engine.stack,
  );
  const [first] = others;
  if (first !== undefined) {
    throw otherStack(engine, first.stack, namesOf(others));
  }
}

function otherStack(
  { endpoint, stack }: StackEngine,
  other: string,
  what: string,
): Error {
  return new Error(
    `the stack ${other} has ${what} on ${endpoint}, and this is ${stack}; nothing was changed: give this one its own names and ports (npx pulumi config set hearth:prefix NAME, and hearth:ports), or other hosts.`,
  );
}

async function listContainers(
  engine: StackEngine,
  filter: string,
): Promise<readonly Found[]> {
  const lines = await dockerAt(engine, [
    "ps",
    "--all",
    "--no-trunc",
    "--filter",
    filter,
    "--format",
    `{{.ID}} {{.Names}} {{.Label "${CONFIG_LABEL}"}} {{.Label "${STACK_LABEL}"}}`,
  ]);
  return outputLines(lines).map((line) => {
    const [id = "", name = "", label = "", stack = ""] = line.split(" ");
    return { id, name, ours: label !== "", stack };
  });
}

/** In one command: docker waits for them in parallel. */
async function stopAndRemove(
  engine: StackEngine,
  ids: readonly string[],
  graceSeconds: number,
): Promise<void> {
  if (ids.length === 0) {
    return;
  }
  await dockerAt(
    engine,
    ["stop", "--time", String(graceSeconds), ...ids],
    "",
    COMMAND_WITHIN_MS + graceSeconds * 1000,
  );
  await dockerAt(engine, ["rm", "--force", ...ids]);
}

function namesOf(containers: readonly Found[]): string {
  return containers
    .map(({ name }) => name)
    .toSorted()
    .join(", ");
}
