import { confirm, text } from "@clack/prompts";
import { given } from "./answer.ts";
import {
  destroy,
  keptVolumes,
  leftVolumes,
  previewDestroy,
  purge,
  removalOf,
} from "./destroy.ts";
import { UsageError, type Flags } from "./flags.ts";
import { namesByHost } from "./host-view.ts";
import { rejectMovedServices } from "./placement.ts";
import { rejectUnfinishedRotation } from "./rotate.ts";
import { readSettings, type Session } from "./session.ts";
import { checkDestroy } from "./unknown-stack.ts";

export async function destroyVerb(
  session: Session,
  flags: Flags,
): Promise<number> {
  const { stack, say } = session;
  if (flags.purge === true && !process.stdin.isTTY) {
    throw new UsageError(
      "destroy --purge asks for the stack's name: run it in a terminal.",
    );
  }
  rejectUnfinishedRotation(await readSettings(session));
  await rejectMovedServices(session);
  const unknown = await checkDestroy(session);
  await previewDestroy(session);
  if (unknown.length > 0) {
    say(`Not in the state, removed as well: ${namesByHost(unknown)}`);
  }
  if (flags.purge === true) {
    const typed = given(
      await text({
        message: `All data will be deleted: spend, keys, notes, backups on the hosts. Type the stack's name (${stack.name}) to continue`,
      }),
    );
    if (typed !== stack.name) {
      throw new Error(
        `"${typed}" is not the stack's name; nothing was changed.`,
      );
    }
  } else if (flags.yes !== true) {
    if (!process.stdin.isTTY) {
      throw new UsageError(
        "destroy asks for confirmation: add --yes to run it without a terminal.",
      );
    }
    if (given(await confirm({ message: "Remove these resources?" })) !== true) {
      throw new Error("canceled; nothing was changed.");
    }
  }
  await destroy(session, unknown);
  const volumes = await keptVolumes(session);
  if (flags.purge !== true) {
    say(
      `The data is kept (${namesByHost(volumes, "nothing")}): \`npm run deploy -- up\` uses it again.`,
    );
    return 0;
  }
  await purge(session, volumes);
  const left = await leftVolumes(session);
  say(
    `${
      left.length === 0
        ? "Only images are left on the hosts: `docker image prune --all` there removes those without containers."
        : `Not in the state, therefore not deleted: ${namesByHost(left)}; ${removalOf(session, left)}.`
    } The directories of notesData and backupDirectory are kept; \`npx pulumi stack rm ${stack.name}\` removes the stack itself.`,
  );
  return 0;
}
