import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { Failure } from "../../../core/failure.ts";
import { needForm } from "../../http/forms.ts";
import { statusOfNotesFailure } from "../../http/vault-answers.ts";
import { redirectWithMessage, showingFailures } from "../../http/show-page.ts";
import type { VaultOperations } from "../../../supervisor/vaults/vault-acts.ts";

const PATH = "/notes";
const confirmForm = z.object({ confirm: z.string().default("") });
const seedForm = confirmForm.extend({ accept: z.literal("true").optional() });
const resolveForm = z.object({
  document: z.string("note is required").max(10_000),
  keep: z.union(
    [z.enum(["newer", "both"]), z.string().regex(/^\d+-[0-9a-f]+$/)],
    {
      error: "version is required",
    },
  ),
});
const MAX_NAME_LENGTH = 100;

/** POST /notes/:vault/resolve|restore-seed|remove. */
export function registerVaultChanges(
  server: FastifyInstance,
  acts: VaultOperations,
): void {
  atVault(server, "resolve", async (request, reply, vault) => {
    const { document, keep } = needForm(request, resolveForm);
    const { kept, copies } = await acts.resolve(
      vault,
      document,
      keep === "newer" || keep === "both" ? keep : { rev: keep },
    );
    const also =
      copies.length === 0
        ? ""
        : `, the other as ${copies.join(", ").slice(0, MAX_NAME_LENGTH)}`;
    return redirectWithMessage(
      reply,
      `${PATH}/${encodeURIComponent(vault)}`,
      `Version ${kept.slice(0, 8)} of ${document.slice(0, MAX_NAME_LENGTH)} kept${also}. Devices update on their next sync.`,
    );
  });
  atVault(server, "restore-seed", async (request, reply, vault) => {
    const { accept, confirm } = needForm(request, seedForm);
    if (accept === "true") {
      needName(vault, confirm, "the seed was not changed");
    }
    const { did } = await acts.restoreSeed(vault, accept === "true");
    return redirectWithMessage(
      reply,
      `${PATH}/${encodeURIComponent(vault)}`,
      did === "restored"
        ? `Old seed of ${vault} restored. Its devices have access again.`
        : `New seed of ${vault} accepted. Its devices have access again.`,
    );
  });
  atVault(server, "remove", async (request, reply, vault) => {
    const { confirm } = needForm(request, confirmForm);
    needName(vault, confirm, "nothing was removed");
    const { documents, stays } = await acts.remove(vault);
    return redirectWithMessage(
      reply,
      PATH,
      [`Vault ${vault} with ${documents} documents removed.`, ...stays].join(
        " ",
      ),
    );
  });
}

type VaultRequest = FastifyRequest<{ Params: { vault: string } }>;

/** POST /notes/:vault/`act`; a failure is a page that links back to the vault. */
export function atVault(
  server: FastifyInstance,
  act: string,
  handle: (
    request: VaultRequest,
    reply: FastifyReply,
    vault: string,
  ) => Promise<FastifyReply>,
): void {
  server.post<{ Params: { vault: string } }>(
    `${PATH}/:vault/${act}`,
    (request, reply) => {
      const { vault } = request.params;
      const back = `${PATH}/${encodeURIComponent(vault)}`;
      return showingFailures(
        request,
        reply,
        { statusOf: statusOfNotesFailure, back },
        () => handle(request, reply, vault),
      );
    },
  );
}

/** Throws a Failure unless the name was typed. */
export function needName(
  vault: string,
  typed: string,
  otherwise: string,
): void {
  if (typed.trim() !== vault) {
    throw new Failure(
      `The typed name does not match "${vault}": ${otherwise}.`,
    );
  }
}
