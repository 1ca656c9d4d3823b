import type { Verb } from "./verb.ts";

const vaults = () => import("./notes-vaults.ts");
const care = () => import("./notes-care.ts");

export const notes: Verb = {
  name: "notes",
  description: "Vaults for Obsidian: make one, connect devices, look after it.",
  example: "hearth notes setup-uri notes",
  verbs: {
    add: async () => (await vaults()).add,
    list: async () => (await vaults()).list,
    remove: async () => (await vaults()).remove,
    "setup-uri": async () => (await vaults()).setupUri,
    rotate: async () => (await vaults()).rotate,
    devices: async () => (await care()).devices,
    conflicts: async () => (await care()).conflicts,
    resolve: async () => (await care()).resolve,
    backup: async () => (await care()).backup,
    restore: async () => (await import("./notes-restore.ts")).restore,
    "restore-seed": async () => (await care()).restoreSeed,
    history: async () => (await import("./notes-history.ts")).history,
    space: async () => (await import("./notes-space.ts")).space,
    collect: async () => (await import("./notes-collect.ts")).collect,
    export: async () => (await import("./notes-export.ts")).exportVerb,
    mirror: async () => (await import("./notes-mirror.ts")).mirror,
    doctor: async () => (await care()).doctor,
  },
};
