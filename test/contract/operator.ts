import type { RecordedStep, Scenario } from "./recordings.ts";
import type { RunningServer } from "./server-under-test.ts";
import { ask } from "./start-notes.ts";

const SEED = "_local/obsidian_livesync_sync_parameters";

export const security = (user: string): unknown => ({
  admins: { names: [], roles: ["_admin"] },
  members: { names: [user], roles: [] },
});

/** The server of a scenario, and the seeds that were deleted from it. */
export interface OperatedServer {
  readonly running: RunningServer;
  readonly seeds: unknown[];
}

/** Repeats an action of the operator in a recorded scenario. */
export async function repeatAction(
  { running, seeds }: OperatedServer,
  scenario: Scenario,
  step: RecordedStep,
): Promise<void> {
  const seed = `${scenario.db}/${SEED}`;
  switch (step.event) {
    case "operator deletes _local/obsidian_livesync_sync_parameters": {
      seeds.push(
        await (
          await ask(`${running.url}/${seed}`, { user: running.admin })
        ).json(),
      );
      await operate(running, "DELETE", seed);
      break;
    }
    case "operator puts the old seed back": {
      const { _rev } = (await (
        await ask(`${running.url}/${seed}`, { user: running.admin })
      ).json()) as { _rev: string };
      await operate(running, "PUT", seed, {
        ...(seeds.at(-1) as object),
        _rev,
      });
      break;
    }
    case "operator puts the old seed back before any device wrote under the new one": {
      const { _rev, ...members } = seeds.at(-1) as Record<string, unknown>;
      await operate(running, "PUT", seed, members);
      break;
    }
    case "operator saves the same password again (new salt)":
      await saveUser(running, "vault-lock2");
      break;
    case "_security put back by the operator":
      await operate(
        running,
        "PUT",
        `${scenario.db}/_security`,
        security("vault-member"),
      );
      break;
    default:
      // Actions of devices are part of their requests.
      if (step.event?.includes("operator") === true) {
        throw new Error(`not replayed: ${step.event}`);
      }
      break;
  }
}

export async function saveUser(
  running: RunningServer,
  name: string,
): Promise<void> {
  const address = `_users/org.couchdb.user:${name}`;
  const before = await ask(`${running.url}/${address}`, {
    user: running.admin,
  });
  const rev = before.ok
    ? ((await before.json()) as { _rev: string })._rev
    : undefined;
  await operate(running, "PUT", address, {
    ...(rev === undefined ? {} : { _rev: rev }),
    name,
    password: passwordOf(name),
    roles: [],
    type: "user",
  });
}

export function passwordOf(user: string): string {
  return `not-a-secret-${user}`;
}

export async function operate(
  running: RunningServer,
  method: string,
  address: string,
  json?: unknown,
): Promise<void> {
  const answer = await ask(`${running.url}/${address}`, {
    method,
    user: running.admin,
    json,
  });
  if (!answer.ok) {
    throw new Error(
      `${method} ${address}: ${answer.status} ${await answer.text()}`,
    );
  }
}
