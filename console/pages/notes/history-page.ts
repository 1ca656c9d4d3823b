import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { needForm } from "../../http/forms.ts";
import { statusOfNotesFailure } from "../../http/vault-answers.ts";
import {
  redirectWithMessage,
  showingFailures,
  showPage,
} from "../../http/show-page.ts";
import type { VaultOperations } from "../../../supervisor/vaults/vault-acts.ts";
import { restoreVault } from "../../../supervisor/vaults/vault-past.ts";
import { readHistory, readTime, sealedCipher } from "./history-reader.ts";
import { viewHistory } from "./history-view.ts";
import { atVault, needName } from "./vault-changes.ts";

const restoreForm = z.object({
  at: z.coerce.number("time is required").positive(),
  path: z.string().max(10_000).optional(),
  confirm: z.string().default(""),
});

interface HistoryRequest {
  readonly Params: { readonly vault: string };
  readonly Querystring: { readonly at?: string; readonly path?: string };
}

interface HistoryPageParts {
  readonly acts: VaultOperations;
  readonly timeZone: string;
  readonly now: () => number;
}

/** GET /notes/:vault/history?at=&path=; POST restores a vault, a folder or a note. */
export function registerHistoryPage(
  server: FastifyInstance,
  parts: HistoryPageParts,
): void {
  server.get<HistoryRequest>("/notes/:vault/history", (request, reply) => {
    const back = `/notes/${encodeURIComponent(request.params.vault)}`;
    return showingFailures(
      request,
      reply,
      { statusOf: statusOfNotesFailure, back },
      () => showHistory(request, reply, parts),
    );
  });
  atVault(server, "history", (request, reply, vault) =>
    restore(request, reply, vault, parts),
  );
}

async function showHistory(
  request: FastifyRequest<HistoryRequest>,
  reply: FastifyReply,
  { acts, timeZone, now }: HistoryPageParts,
): Promise<FastifyReply> {
  const { vault } = request.params;
  const { at = "", path = "" } = request.query;
  const source = await acts.history(vault);
  const summary = await source.summary();
  const time = readTime(at, summary.from, now(), timeZone);
  const query = {
    at: time.at,
    path: path.trim() === "" ? undefined : path.trim(),
  };
  const view = viewHistory({
    ...(time.mistake === undefined
      ? await readHistory(source, vault, query, { summary, now: now() })
      : { summary, shown: { kind: "nothing" } }),
    vault,
    query,
    ...(time.mistake === undefined
      ? {}
      : { mistake: { typed: at, text: time.mistake } }),
    timeZone,
    now: now(),
  });
  return showPage(
    request,
    reply,
    {
      title: view.title,
      look: "ok",
      current: "/notes",
      json: `/api/notes/${encodeURIComponent(vault)}/history`,
      ...(time.mistake === undefined ? {} : { status: 400 }),
    },
    "vault-history",
    view,
  );
}

async function restore(
  request: FastifyRequest,
  reply: FastifyReply,
  vault: string,
  { acts, now }: HistoryPageParts,
): Promise<FastifyReply> {
  const { at, path, confirm } = needForm(request, restoreForm);
  if (path === undefined) {
    needName(vault, confirm, "nothing was restored");
  }
  const source = await acts.history(vault);
  const { written, deleted } = await restoreVault(
    {
      ...source,
      write: (documents, chunks) => acts.restoreNotes(vault, documents, chunks),
    },
    sealedCipher(vault, await source.summary()),
    { at, path, now: now() },
  );
  return redirectWithMessage(
    reply,
    `/notes/${encodeURIComponent(vault)}/history`,
    `${path ?? vault} restored: ${written.length} written, ${deleted.length} deleted. Devices update on their next sync.`,
  );
}
