import {
  counted,
  grouped,
  momentFrom,
  readable,
  shortened,
} from "../../../core/words.ts";
import { MASTER_USER } from "../../../supervisor/gateway/owners.ts";
import type { Value } from "../../../supervisor/reports/csv.ts";
import { withTyped, type Field } from "../field.ts";
import { auditHref, SOURCES, type AuditChoice } from "./audit-choice.ts";
import type { AuditEntry } from "./audit-reader.ts";

/** What the gateway records: gateway/admin/audit.ts. */
const ACTIONS = [
  "created",
  "updated",
  "deleted",
  "blocked",
  "unblocked",
  "rotated",
  "spend_set",
  "reloaded",
  "flushed",
  "viewed",
] as const;

const TYPES = [
  "key",
  "user",
  "team",
  "member",
  "organization",
  "organization member",
  "model",
  "credential",
  "budget",
  "tag",
  "end user",
  "access group",
  "configuration",
  "cache",
] as const;

/** More changes of one entry are folded. */
const SHOWN_CHANGES = 6;

/** What templates/audit.eta shows. `entries`: those of the page, and one more if there are older ones. */
export function viewAudit(
  choice: AuditChoice,
  entries: readonly AuditEntry[],
  size: number,
  timeZone: string,
  now: number,
) {
  const shown = entries.slice(0, size);
  const last = shown.at(-1);
  const hasOlder = entries.length > size && last !== undefined;
  return {
    title: headingOf(choice, shown.length, hasOlder),
    ...viewControls(choice),
    isConsole: choice.source === "console",
    rows: shown.map((entry) => ({
      ...entry,
      at: momentFrom(now, entry.at, timeZone),
      author: entry.author === MASTER_USER ? "the master key" : entry.author,
      note: entry.id === entry.object ? "" : shortenedId(entry),
      changes: entry.changes.slice(0, SHOWN_CHANGES),
      more: entry.changes.slice(SHOWN_CHANGES),
    })),
    older: hasOlder ? auditHref({ ...choice, before: last.cursor }) : null,
    newest: choice.before === "" ? null : auditHref({ ...choice, before: "" }),
    csv: auditHref({ ...choice, before: "" }, "/audit.csv"),
  };
}

/** What is shown also while the record cannot be read. */
function viewControls(choice: AuditChoice) {
  return {
    source: choice.source,
    sources: SOURCES.map((source) => ({
      name:
        source === "gateway"
          ? "Keys, users, teams, models"
          : "Services, jobs, notes",
      href: auditHref({ source, author: choice.author }),
      current: source === choice.source,
    })),
    fields: withTyped(fieldsOf(choice), { ...choice }, {}),
    isFiltered: isFiltered(choice),
    clear: auditHref({ source: choice.source }),
  };
}

function fieldsOf({ source }: AuditChoice): readonly Field[] {
  const any = ["", "any"] as const;
  const ofGateway: readonly Field[] = [
    {
      name: "action",
      label: "Action",
      kind: "choice",
      values: [
        any,
        ...ACTIONS.map((each) => [each, each.replaceAll("_", " ")] as const),
      ],
    },
    {
      name: "type",
      label: "Kind of object",
      kind: "choice",
      values: [any, ...TYPES.map((each) => [each, each] as const)],
    },
  ];
  return [
    {
      name: "author",
      label: "Author",
      note: `A part of the name, such as anna; the master key is ${MASTER_USER}.`,
      kind: "text",
    },
    ...(source === "gateway" ? ofGateway : []),
    {
      name: "object",
      label: "Object",
      note:
        source === "gateway"
          ? "Its ID; of a key, the hash."
          : "A part of the name of a service, check or job.",
      kind: "text",
    },
    { name: "from", label: "From", kind: "day" },
    { name: "until", label: "To", kind: "day" },
  ];
}

function isFiltered({ source: _, before: __, ...filters }: AuditChoice) {
  return Object.values(filters).some((value) => value !== "");
}

function headingOf(
  choice: AuditChoice,
  count: number,
  hasOlder: boolean,
): string {
  if (choice.before !== "") {
    return count === 0 ? "No earlier changes." : "Earlier changes.";
  }
  if (count === 0) {
    return isFiltered(choice) ? "No changes match." : "No changes yet.";
  }
  return hasOlder
    ? `The last ${grouped(count)} changes.`
    : `${counted(count, "change")}.`;
}

const MAX_CHARACTERS = 20;
/** Of the hash of a key, which is only compared by its beginning. */
const HASH_CHARACTERS = 8;

function shortenedId({ type, id }: AuditEntry): string {
  return shortened(
    readable(id),
    type === "key" ? HASH_CHARACTERS : MAX_CHARACTERS,
  );
}

/** The rows of a spreadsheet, with their titles. */
export function csvRows(
  entries: readonly AuditEntry[],
): readonly (readonly Value[])[] {
  return [
    ["time", "author", "action", "kind", "object", "id", "changes"],
    ...entries.map(({ at, author, action, type, object, id, changes }) => [
      new Date(at).toISOString(),
      author,
      action,
      type,
      object,
      id,
      changes.join("; "),
    ]),
  ];
}
