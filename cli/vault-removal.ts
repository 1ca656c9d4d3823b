import type { VaultView } from "../supervisor/vaults/overview.ts";

/** What the removal of a vault deletes, and whether it can be restored afterwards. */
export function removalWords(view: VaultView | undefined): string {
  const deletes = "This deletes the vault on the server for all devices.";
  if (view === undefined) {
    return deletes;
  }
  return view.backup === null
    ? `${deletes} No backup on this machine contains it: run \`hearth notes backup\` first, so that it can be restored.`
    : `${deletes} The backup ${view.backup} contains it.`;
}
