import {
  isRecord,
  parseRecord,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import type { StreamPiece } from "../providers/wire.ts";
import { mapTexts, replaced, textsIn, withoutProbabilities } from "./texts.ts";

/** A part of a text that a stream's event adds to. */
interface Delta {
  /** The text that it continues, such as the content of the first choice. */
  readonly channel: string;
  /** Of the texts in one group only the latest is still being written. */
  readonly group: string;
  readonly text: string;
}

/** One event of a stream, in the shape of any client's API. */
export interface ReadEvent {
  readonly piece: StreamPiece;
  readonly deltas: readonly Delta[];
  /** Texts that it repeats as a whole, as the last events of Responses do. */
  readonly wholes: readonly string[];
  /** Whether the texts before it are complete. */
  readonly endsTexts: boolean;
  /** The event with other texts in the place of those of `deltas`, then those of `wholes`. */
  write(deltas: readonly string[], wholes: readonly string[]): StreamPiece;
}

/** Reads what a model says in an event. Events without any are passed on as they are. */
export function readEvent(piece: StreamPiece): ReadEvent {
  const event = piece.kind === "error" ? null : parseRecord(piece.data);
  if (event === null) {
    return {
      piece,
      deltas: [],
      wholes: [],
      endsTexts: false,
      write: () => piece,
    };
  }
  const added = deltasOf(event);
  const whole = added === null ? wholePart(event) : {};
  const wholes = textsIn(whole);
  const parts = added?.map(({ value }) => textsWithPaths(value)) ?? [];
  const deltas = (added ?? []).flatMap(({ group }, at) =>
    (parts[at] ?? []).map(({ path, text }) => ({
      channel: `${group}${path}`,
      // Blocks and items are written one after the other, choices side by side.
      group: group.startsWith("choice") ? group : "",
      text,
    })),
  );
  return {
    piece,
    deltas,
    wholes,
    // A whole text follows the last part of it; sources are named while a text is written.
    endsTexts: wholes.length > 0 && !("annotation" in whole),
    write(deltaTexts, wholeTexts) {
      const rest = [...deltaTexts];
      let changed = withWhole(event, replaced(whole, wholeTexts));
      for (const [at, { put, value }] of (added ?? []).entries()) {
        const own = rest.splice(0, parts[at]?.length ?? 0);
        changed = put(changed, replaced(value, own));
      }
      return {
        ...piece,
        data: JSON.stringify(withoutProbabilities(changed)),
      };
    },
  };
}

interface Added {
  readonly group: string;
  readonly value: JsonRecord;
  put(event: JsonRecord, value: JsonRecord): JsonRecord;
}

/** The parts of an event that continue texts; null: it has whole texts, if any. */
function deltasOf(event: JsonRecord): readonly Added[] | null {
  const { type, delta } = event;
  if (Array.isArray(event["choices"])) {
    return recordsOf(event["choices"]).map((choice, at) => ({
      group: `choice ${String(choice["index"] ?? at)}`,
      value: isRecord(choice["delta"])
        ? choice["delta"]
        : { text: choice["text"] ?? "" },
      put: (whole, value) => ({
        ...whole,
        choices: recordsOf(whole["choices"]).map((other, place) =>
          place !== at
            ? other
            : "delta" in other
              ? { ...other, delta: value }
              : { ...other, ...value },
        ),
      }),
    }));
  }
  if (
    typeof delta === "string" ||
    (isRecord(delta) && WITH_PARTS.has(textOf(type)))
  ) {
    return [
      {
        group: `item ${PLACE.map((name) => String(event[name])).join(" ")}`,
        value: { delta },
        put: (whole, value) => ({ ...whole, ...value }),
      },
    ];
  }
  return null;
}

/** Events whose `delta` is an object with texts. */
const WITH_PARTS = new Set([
  "content_block_delta",
  "response.shell_call_output_content.delta",
]);
/** Fields that identify a text of Messages and Responses. */
const PLACE = [
  "type",
  "index",
  "item_id",
  "output_index",
  "content_index",
  "summary_index",
  "command_index",
];

/** Fields with whole texts of events of Messages and Responses. */
const WHOLE = [
  "text",
  "refusal",
  "arguments",
  "input",
  "code",
  "command",
  "output",
  "annotation",
  "part",
  "item",
  "content_block",
];

function wholePart(event: JsonRecord): JsonRecord {
  const fields = WHOLE.filter((name) => name in event).map(
    (name) => [name, event[name]] as const,
  );
  const { output } = recordOf(event["response"]);
  return Object.fromEntries(
    Array.isArray(output) ? [...fields, ["response", { output }]] : fields,
  );
}

/** The other fields of a response repeat the request. */
function withWhole(
  event: JsonRecord,
  { response, ...fields }: JsonRecord,
): JsonRecord {
  return response === undefined
    ? { ...event, ...fields }
    : {
        ...event,
        ...fields,
        response: { ...recordOf(event["response"]), ...recordOf(response) },
      };
}

function textsWithPaths(
  value: JsonRecord,
): readonly { readonly path: string; readonly text: string }[] {
  const found: { path: string; text: string }[] = [];
  mapTexts(value, (text, path) => {
    found.push({ path, text });
    return text;
  });
  return found;
}
