import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { readForm, type Fields } from "../../http/forms.ts";
import { statusOfNotesFailure } from "../../http/vault-answers.ts";
import { attempting, showPage } from "../../http/show-page.ts";
import type { SetupAnswer } from "../../../supervisor/vaults/provisioning.ts";
import type { VaultActs } from "../../../supervisor/vaults/vault-acts.ts";
import { withTyped } from "../field.ts";
import { viewNotes } from "./notes-view.ts";
import { viewSetup } from "./setup-answer.ts";
import {
  addFields,
  addForm,
  rotateFields,
  rotateForm,
  setupFields,
  setupForm,
} from "./vault-forms.ts";
import { registerHistoryPage } from "./history-page.ts";
import type { NotesLook } from "./notes-look.ts";
import { atVault, registerVaultChanges } from "./vault-changes.ts";
import { viewVault } from "./vault-view.ts";

export interface NotesPageParts {
  readonly acts: VaultActs;
  /** What the pages show, read within a few seconds. */
  readonly look: NotesLook;
  readonly timeZone: string;
  readonly now: () => number;
}

/** Why there are no notes here, and the supervisor that has them where it is known. */
export interface NoNotes {
  readonly why: string;
  readonly peer: string | undefined;
}

const PATH = "/notes";
const failing = { statusOf: statusOfNotesFailure, back: PATH };
interface Again {
  readonly form: "add" | "setup-uri" | "rotate";
  readonly typed: Fields;
  readonly mistakes: Readonly<Record<string, string>>;
}

/** GET /notes and /notes/:vault; POST /notes makes a vault, /notes/:vault/setup-uri|rotate|resolve|restore-seed|remove. */
export function registerNotesPage(
  server: FastifyInstance,
  parts: NotesPageParts | NoNotes,
): void {
  if ("why" in parts) {
    for (const url of [PATH, `${PATH}/*`]) {
      server.get(url, (request, reply) => showNoNotes(request, reply, parts));
    }
    return;
  }
  const { acts, look } = parts;

  async function showNotes(
    request: FastifyRequest,
    reply: FastifyReply,
    again?: Again,
  ): Promise<FastifyReply> {
    const fields = addFields();
    const view = viewNotes({
      ...(await look.atAll()),
      adding: again !== undefined,
      addFields:
        again === undefined
          ? fields
          : withTyped(fields, again.typed, again.mistakes),
    });
    return showPage(
      request,
      reply,
      {
        title: view.title,
        look: view.look,
        current: PATH,
        status: again === undefined ? 200 : 400,
        json: "/api/notes",
      },
      "notes",
      view,
    );
  }

  async function showVault(
    request: FastifyRequest,
    reply: FastifyReply,
    vault: string,
    {
      from = 0,
      again,
    }: {
      readonly from?: number;
      readonly again?: Again;
    } = {},
  ): Promise<FastifyReply> {
    const also = { passphrase: look.asksForPassphrase(vault) };
    const typed = (
      form: Again["form"],
      fields: ReturnType<typeof setupFields>,
    ) =>
      again?.form === form
        ? withTyped(fields, again.typed, again.mistakes)
        : fields;
    const view = viewVault({
      ...(await look.at(vault, from)),
      setupFields: typed("setup-uri", setupFields(also)),
      rotateFields: typed("rotate", rotateFields(also)),
      formOpen: again === undefined || again.form === "add" ? null : again.form,
    });
    return showPage(
      request,
      reply,
      {
        title: view.title,
        look: view.look,
        current: PATH,
        status: again === undefined ? 200 : 400,
        json: `/api/notes/${encodeURIComponent(vault)}/conflicts`,
      },
      "vault",
      view,
    );
  }

  /** A form with mistakes comes again. */
  async function withForm<T extends z.ZodType>(
    request: FastifyRequest,
    schema: T,
    showAgain: (
      typed: Fields,
      mistakes: Again["mistakes"],
    ) => Promise<FastifyReply>,
    act: (value: z.output<T>) => Promise<FastifyReply>,
  ): Promise<FastifyReply> {
    const form = readForm(request, schema);
    if (form.kind === "read") {
      return act(form.value);
    }
    return showAgain((request.body ?? {}) as Fields, form.mistakes);
  }

  async function showSetup(
    request: FastifyRequest,
    reply: FastifyReply,
    title: string,
    answer: SetupAnswer,
  ): Promise<FastifyReply> {
    return showPage(
      request,
      reply,
      { title, look: "ok", current: PATH },
      "setup-answer",
      await viewSetup(answer, title),
    );
  }

  server.get(PATH, (request, reply) => showNotes(request, reply));
  server.post(PATH, (request, reply) =>
    attempting(request, reply, failing, () =>
      withForm(
        request,
        addForm,
        (typed, mistakes) =>
          showNotes(request, reply, { form: "add", typed, mistakes }),
        async ({ vault, url, forgetPassphrase, ...choices }) =>
          showSetup(
            request,
            reply,
            `Vault ${vault} is made.`,
            await acts.add({
              vault,
              url,
              forgetPassphrase,
              choices: { ...look.usualChoices, ...choices },
            }),
          ),
      ),
    ),
  );
  server.get<{ Params: { vault: string }; Querystring: { from?: string } }>(
    `${PATH}/:vault`,
    (request, reply) =>
      attempting(request, reply, failing, () => {
        const { from = "" } = request.query;
        return showVault(request, reply, request.params.vault, {
          from: /^\d{1,6}$/.test(from) ? Number(from) : 0,
        });
      }),
  );
  atVault(server, "setup-uri", (request, reply, vault) =>
    withForm(
      request,
      setupForm,
      (typed, mistakes) =>
        showVault(request, reply, vault, {
          again: { form: "setup-uri", typed, mistakes },
        }),
      async ({ url, keep, mode, vaultPassphrase }) =>
        showSetup(
          request,
          reply,
          `Connect a device to ${vault}.`,
          await acts.setupUri({
            vault,
            url,
            keep,
            vaultPassphrase,
            choices: mode === undefined ? {} : { mode },
          }),
        ),
    ),
  );
  atVault(server, "rotate", (request, reply, vault) =>
    withForm(
      request,
      rotateForm,
      (typed, mistakes) =>
        showVault(request, reply, vault, {
          again: { form: "rotate", typed, mistakes },
        }),
      async ({ vaultPassphrase }) =>
        showSetup(
          request,
          reply,
          `${vault} has a new password.`,
          await acts.rotate({ vault, vaultPassphrase }),
        ),
    ),
  );

  registerVaultChanges(server, acts);
  registerHistoryPage(server, parts);
}

function showNoNotes(
  request: FastifyRequest,
  reply: FastifyReply,
  { why, peer }: NoNotes,
): Promise<FastifyReply> {
  return showPage(
    request,
    reply,
    { title: "No notes are looked after here.", look: "none", current: PATH },
    "no-notes",
    { why, peer: peer ?? null },
  );
}
