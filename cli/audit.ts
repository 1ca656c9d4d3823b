import {
  readAudit,
  type AuditEntry,
} from "../console/pages/audit/audit-reader.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { inZone } from "./local-time.ts";
import type { Cell } from "./terminal.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";
import { printList } from "./terminal.ts";

const MAX_LINES = 500;

export const audit = defineVerb({
  name: "audit",
  description: "Show who changed which key, user, team or model.",
  example: "hearth audit --author anna --from 2026-11-01",
  args: {
    author: {
      type: "string",
      description: "A part of the author's name",
      valueHint: "name",
    },
    action: {
      type: "string",
      description: "Such as created, updated, deleted, blocked or rotated",
      valueHint: "action",
    },
    type: {
      type: "string",
      description: "Kind of object, such as key, user or team",
      valueHint: "kind",
    },
    object: {
      type: "string",
      description: "ID of the object; of a key, the hash",
      valueHint: "id",
    },
    from: {
      type: "string",
      description: "First day, or time in UTC",
      valueHint: "2026-11-01",
    },
    until: { type: "string", description: "Last day", valueHint: "2026-11-30" },
    lines: {
      type: "string",
      alias: "n",
      default: "30",
      description: `Number of entries, newest first, at most ${MAX_LINES}`,
      valueHint: "number",
    },
    ...jsonArg,
    ...gatewayArg,
  },
  run: async ({ lines, json, url, ...filters }) => {
    const count = Number(lines);
    if (!/^\d+$/.test(lines) || count < 1 || count > MAX_LINES) {
      throw new UsageError(
        `--lines must be a number from 1 to ${MAX_LINES}, not "${lines}".`,
      );
    }
    const { author, action, type, object, from, until } = filters;
    const entries = await readAudit(
      findGateway(url),
      {
        author: author ?? "",
        action: action ?? "",
        type: type ?? "",
        object: object ?? "",
        from: from ?? "",
        until: until ?? "",
        before: "",
      },
      count,
    );
    printList(json, entries, {
      empty: "No changes found.",
      headings: ["time", "author", "action", "object", "change"],
      rowOf,
    });
    return 0;
  },
});

function rowOf(entry: AuditEntry): readonly Cell[] {
  const { at, author, action, type, object, changes } = entry;
  return [
    { text: inZone(at), tone: "soft" },
    { text: author },
    { text: action },
    { text: `${type} ${object}`, tone: "strong" },
    { text: changes.join(", "), tone: "soft" },
  ];
}
