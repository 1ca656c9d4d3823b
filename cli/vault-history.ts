import type { HistorySource } from "../supervisor/vaults/history-source.ts";
import { NoteCipher } from "../supervisor/vaults/note-cipher.ts";
import type { StackClient } from "./stack-client.ts";
import { vaultPassphrase } from "./vault-passphrase.ts";

const LONG_MS = 300_000;

/** A vault's history through the supervisor's API. */
export function historyThrough(
  stack: StackClient,
  vault: string,
): HistorySource {
  const base = `/api/notes/${encodeURIComponent(vault)}/history`;
  const get = async (path: string) => stack.ask("GET", base + path, LONG_MS);
  const post = async (path: string, body: unknown) =>
    stack.ask("POST", base + path, LONG_MS, body);
  return {
    summary: async () =>
      (await get("")) as Awaited<ReturnType<HistorySource["summary"]>>,
    space: async () =>
      (await get("/space")) as Awaited<ReturnType<HistorySource["space"]>>,
    notesAt: async (at, start) =>
      (await get(
        `/notes?${new URLSearchParams({ at: String(at), start }).toString()}`,
      )) as Awaited<ReturnType<HistorySource["notesAt"]>>,
    held: async (start) =>
      (await get(
        `/held?${new URLSearchParams({ start }).toString()}`,
      )) as Awaited<ReturnType<HistorySource["held"]>>,
    versions: async (document) =>
      (await get(
        `/versions?${new URLSearchParams({ document }).toString()}`,
      )) as Awaited<ReturnType<HistorySource["versions"]>>,
    changes: async (since) =>
      (await get(
        `/changes?${new URLSearchParams({ since }).toString()}`,
      )) as Awaited<ReturnType<HistorySource["changes"]>>,
    chunks: async (ids) =>
      (await post("/chunks", { ids })) as Awaited<
        ReturnType<HistorySource["chunks"]>
      >,
    write: async (documents, chunks) => {
      await post("/write", { documents, chunks });
    },
  };
}

export interface OpenedPast {
  readonly source: HistorySource;
  readonly cipher: NoteCipher;
}

/** Opens a vault's history with the cipher for its notes. */
export async function openPast(
  stack: StackClient,
  vault: string,
  passphraseFile: string | undefined,
): Promise<OpenedPast> {
  const source = historyThrough(stack, vault);
  const { salt } = await source.summary();
  const cipher = new NoteCipher(vault, salt, () =>
    vaultPassphrase(vault, passphraseFile),
  );
  return { source, cipher };
}
