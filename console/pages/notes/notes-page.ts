import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { offsetIn, readForm, type Fields } from "../../http/forms.ts";
import { statusOfNotesFailure } from "../../http/vault-answers.ts";
import { showingFailures, showPage } from "../../http/show-page.ts";
import type { SetupAnswer } from "../../../supervisor/vaults/provisioning.ts";
import type { VaultOperations } from "../../../supervisor/vaults/vault-acts.ts";
import { withTyped, type Field } from "../field.ts";
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
import type { NotesReader } from "./notes-reader.ts";
import { atVault, registerVaultChanges } from "./vault-changes.ts";
import { viewVault } from "./vault-view.ts";

interface NotesPageParts {
  readonly acts: VaultOperations;
  /** Reads the data of the pages within a few seconds. */
  readonly reader: NotesReader;
  readonly timeZone: string;
  readonly now: () => number;
}

/** Why notes are not managed here, and the supervisor that manages them, if known. */
interface NoNotes {
  readonly why: string;
  readonly peer: string | undefined;
}

const PATH = "/notes";
const failing = { statusOf: statusOfNotesFailure, back: PATH };

/** A form that is shown again, with its mistakes. */
interface Again {
  readonly form: "add" | "setup-uri" | "rotate";
  readonly typed: Fields;
  readonly mistakes: Readonly<Record<string, string>>;
}

/** GET /notes and /notes/:vault; POST /notes creates a vault, /notes/:vault/setup-uri|rotate|resolve|restore-seed|remove. */
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
  server.get(PATH, (request, reply) => showNotes(request, reply, parts));
  server.post(PATH, (request, reply) =>
    showingFailures(request, reply, failing, () =>
      addVault(request, reply, parts),
    ),
  );
  server.get<VaultPageRequest>(`${PATH}/:vault`, (request, reply) =>
    showingFailures(request, reply, failing, () =>
      showVault(request, reply, parts, request.params.vault, {
        from: offsetIn(request.query.from),
      }),
    ),
  );
  atVault(server, "setup-uri", (request, reply, vault) =>
    connectDevice(request, reply, parts, vault),
  );
  atVault(server, "rotate", (request, reply, vault) =>
    rotatePassword(request, reply, parts, vault),
  );
  registerVaultChanges(server, parts.acts);
  registerHistoryPage(server, parts);
}

interface VaultPageRequest {
  readonly Params: { readonly vault: string };
  readonly Querystring: { readonly from?: string };
}

async function showNotes(
  request: FastifyRequest,
  reply: FastifyReply,
  { reader }: NotesPageParts,
  again?: Again,
): Promise<FastifyReply> {
  const view = viewNotes({
    ...(await reader.readAll()),
    adding: again !== undefined,
    addFields: filledIn(addFields(), "add", again),
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
  { reader }: NotesPageParts,
  vault: string,
  {
    from = 0,
    again,
  }: {
    readonly from?: number;
    readonly again?: Again;
  },
): Promise<FastifyReply> {
  const also = { passphrase: reader.asksForPassphrase(vault) };
  const view = viewVault({
    ...(await reader.readVault(vault, from)),
    setupFields: filledIn(setupFields(also), "setup-uri", again),
    rotateFields: filledIn(rotateFields(also), "rotate", again),
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

function filledIn(
  fields: readonly Field[],
  form: Again["form"],
  again: Again | undefined,
): readonly Field[] {
  return again?.form === form
    ? withTyped(fields, again.typed, again.mistakes)
    : fields;
}

async function addVault(
  request: FastifyRequest,
  reply: FastifyReply,
  parts: NotesPageParts,
): Promise<FastifyReply> {
  const { acts, reader } = parts;
  const form = readForm(request, addForm);
  if (form.kind === "mistakes") {
    return showNotes(request, reply, parts, { ...form, form: "add" });
  }
  const { vault, url, forgetPassphrase, ...choices } = form.value;
  const answer = await acts.add({
    vault,
    url,
    forgetPassphrase,
    choices: { ...reader.usualChoices, ...choices },
  });
  return showSetup(request, reply, `Vault "${vault}" created.`, answer);
}

async function connectDevice(
  request: FastifyRequest,
  reply: FastifyReply,
  parts: NotesPageParts,
  vault: string,
): Promise<FastifyReply> {
  const form = readForm(request, setupForm);
  if (form.kind === "mistakes") {
    const again = { ...form, form: "setup-uri" } as const;
    return showVault(request, reply, parts, vault, { again });
  }
  const { url, keep, mode, vaultPassphrase } = form.value;
  const answer = await parts.acts.setupUri({
    vault,
    url,
    keep,
    vaultPassphrase,
    choices: mode === undefined ? {} : { mode },
  });
  return showSetup(request, reply, `Connect a device to ${vault}.`, answer);
}

async function rotatePassword(
  request: FastifyRequest,
  reply: FastifyReply,
  parts: NotesPageParts,
  vault: string,
): Promise<FastifyReply> {
  const form = readForm(request, rotateForm);
  if (form.kind === "mistakes") {
    const again = { ...form, form: "rotate" } as const;
    return showVault(request, reply, parts, vault, { again });
  }
  const { vaultPassphrase } = form.value;
  const answer = await parts.acts.rotate({ vault, vaultPassphrase });
  return showSetup(
    request,
    reply,
    `Vault "${vault}" has a new password.`,
    answer,
  );
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

function showNoNotes(
  request: FastifyRequest,
  reply: FastifyReply,
  { why, peer }: NoNotes,
): Promise<FastifyReply> {
  return showPage(
    request,
    reply,
    {
      title: "Notes are not managed on this host.",
      look: "none",
      current: PATH,
    },
    "no-notes",
    { why, peer: peer ?? null },
  );
}
