import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { listBackups } from "../../supervisor/backup/manifest.ts";
import {
  deviceChoices,
  vaultChoices,
} from "../../supervisor/vaults/plugin-settings.ts";
import type { VaultOperations } from "../../supervisor/vaults/vault-acts.ts";
import { registerHistoryRoutes } from "./history-routes.ts";
import { sendError } from "./send-error.ts";
import { answering, withBody } from "./vault-answers.ts";

interface NotesRouteParts {
  readonly acts: VaultOperations;
  readonly backups: string;
}

const text = z.string().min(1, "must not be empty").max(2000);
const addBody = vaultChoices.extend({
  vault: text,
  url: text.optional(),
  forgetPassphrase: z.boolean().default(false),
});
const setupBody = z.strictObject({
  url: text.optional(),
  vaultPassphrase: text.optional(),
  choices: deviceChoices.optional(),
  keep: z.boolean().default(false),
});
const rotateBody = z.strictObject({ vaultPassphrase: text.optional() });
const seedBody = z.strictObject({ accept: z.boolean().default(false) });
const resolveBody = z.union(
  [
    z.strictObject({ document: text, newer: z.literal(true) }),
    z.strictObject({ document: text, both: z.literal(true) }),
    z.strictObject({ document: text, rev: text }),
  ],
  "must be {document, newer: true}, {document, both: true} or {document, rev}",
);
const collectBody = z.strictObject({
  notesSeq: z.number(),
  unused: z.array(z.string()),
  free: z.boolean(),
  /** Devices and checkpoints that no longer exist. */
  forget: z.array(text).default([]),
});
const MAX_CHUNK_LIST = 64 * 1024 * 1024;
const nothing = z.strictObject({});

interface VaultRequest {
  readonly Params: { readonly vault: string };
}

/**
 * GET, POST /api/notes; GET /api/notes/backups; GET /api/notes/:vault/conflicts|devices|growth; POST
 * /api/notes/:vault/setup-uri|rotate|remove|restore-seed|resolve|collect. A text in place of `parts` explains why notes are not managed here.
 */
export function registerNotesRoutes(
  server: FastifyInstance,
  parts: NotesRouteParts | string,
): void {
  if (typeof parts === "string") {
    for (const url of ["/api/notes", "/api/notes/*"]) {
      server.route({
        method: ["GET", "POST"],
        url,
        handler: (_request, reply) => sendError(reply, 409, parts),
      });
    }
    return;
  }
  const { acts, backups } = parts;
  server.get("/api/notes", (_request, reply) =>
    answering(reply, async () => ({ vaults: await acts.list() })),
  );
  server.get("/api/notes/backups", (_request, reply) =>
    answering(reply, async () => ({
      directory: backups,
      backups: listBackups(backups),
    })),
  );
  server.post("/api/notes", (request, reply) =>
    withBody(request, reply, addBody, (body) => {
      const { vault, url, forgetPassphrase, ...choices } = body;
      return acts.add({ vault, url, forgetPassphrase, choices });
    }),
  );
  registerAccessRoutes(server, acts);
  registerContentRoutes(server, acts);
  registerHistoryRoutes(server, acts);
}

/** Access to a vault, and its removal. */
function registerAccessRoutes(
  server: FastifyInstance,
  acts: VaultOperations,
): void {
  server.post<VaultRequest>("/api/notes/:vault/setup-uri", (request, reply) =>
    withBody(request, reply, setupBody, (body) =>
      acts.setupUri({ vault: request.params.vault, ...clean(body) }),
    ),
  );
  server.post<VaultRequest>("/api/notes/:vault/rotate", (request, reply) =>
    withBody(request, reply, rotateBody, (body) =>
      acts.rotate({ vault: request.params.vault, ...body }),
    ),
  );
  server.post<VaultRequest>("/api/notes/:vault/remove", (request, reply) =>
    withBody(request, reply, nothing, () => acts.remove(request.params.vault)),
  );
  server.post<VaultRequest>(
    "/api/notes/:vault/restore-seed",
    (request, reply) =>
      withBody(request, reply, seedBody, ({ accept }) =>
        acts.restoreSeed(request.params.vault, accept),
      ),
  );
}

/** Conflicts, size and devices of a vault. */
function registerContentRoutes(
  server: FastifyInstance,
  acts: VaultOperations,
): void {
  server.get<VaultRequest>("/api/notes/:vault/conflicts", (request, reply) =>
    answering(reply, () => acts.conflicts(request.params.vault)),
  );
  server.post<VaultRequest>("/api/notes/:vault/resolve", (request, reply) =>
    withBody(request, reply, resolveBody, (body) =>
      acts.resolve(
        request.params.vault,
        body.document,
        "rev" in body ? { rev: body.rev } : "both" in body ? "both" : "newer",
      ),
    ),
  );
  server.post<VaultRequest>(
    "/api/notes/:vault/collect",
    { bodyLimit: MAX_CHUNK_LIST },
    (request, reply) =>
      withBody(request, reply, collectBody, (body) =>
        acts.collect(request.params.vault, body),
      ),
  );
  server.get<VaultRequest>("/api/notes/:vault/growth", (request, reply) =>
    answering(reply, () => acts.growth(request.params.vault)),
  );
  server.get<VaultRequest>("/api/notes/:vault/devices", (request, reply) =>
    answering(reply, () => acts.devices(request.params.vault)),
  );
}

/** Members that are undefined are left out. */
function clean<T extends object>(body: T): T {
  return Object.fromEntries(
    Object.entries(body).filter(([, value]) => value !== undefined),
  ) as T;
}
