import type { Verb } from "./verb.ts";

const vaults = () => import("./notes-vaults.ts");
const maintenance = () => import("./notes-maintenance.ts");

export const notes: Verb = {
  name: "notes",
  description: "Vaults for Obsidian: create, connect devices, maintain.",
  example: "hearth notes setup-uri notes",
  verbs: {
    add: async () => (await vaults()).add,
    list: async () => (await vaults()).list,
    remove: async () => (await vaults()).remove,
    "setup-uri": async () => (await vaults()).setupUri,
    rotate: async () => (await vaults()).rotate,
    devices: async () => (await maintenance()).devices,
    conflicts: async () => (await maintenance()).conflicts,
    resolve: async () => (await maintenance()).resolve,
    backup: async () => (await maintenance()).backup,
    restore: async () => (await import("./notes-restore.ts")).restore,
    "restore-seed": async () => (await maintenance()).restoreSeed,
    history: async () => (await import("./notes-history.ts")).history,
    space: async () => (await import("./notes-space.ts")).space,
    collect: async () => (await import("./notes-collect.ts")).collect,
    export: async () => (await import("./notes-export.ts")).exportVerb,
    mirror: async () => (await import("./notes-mirror.ts")).mirror,
    doctor: async () => (await maintenance()).doctor,
  },
};
