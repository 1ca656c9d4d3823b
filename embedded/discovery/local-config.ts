import { readFileSync, statSync } from "node:fs";
import { isMap, isSeq, LineCounter, parseDocument, type Document } from "yaml";
import { recordOf } from "../../core/json.ts";
import { writeDurably } from "../../core/durable-file.ts";
import { Failure, codeOf } from "../../core/failure.ts";
import {
  entriesOf,
  type Entry,
  type FoundRunner,
} from "../../supervisor/gateway/find-runners.ts";

export interface Written {
  readonly added: readonly Entry[];
  readonly known: readonly Entry[];
}

const HEADING = ` The operator's own settings: they win over config/gateway.yaml.`;

/**
 * Adds the runners' models to the operator's file and keeps everything else in it, including comments. Models that are there
 * already (same model at the same address) are not changed.
 */
export function addModels(
  path: string,
  runners: readonly FoundRunner[],
): Written {
  const document = open(path);
  const list = document.get("model_list");
  if (list !== undefined && list !== null && !isSeq(list)) {
    throw new Failure(
      `model_list in ${path} must be a list: fix it, then run the command again.`,
    );
  }
  const present = new Set(
    (isSeq(list) ? list.items : []).map((item) => keyOf(document, item)),
  );
  const entries = runners.flatMap(entriesOf);
  const known = entries.filter((entry) => present.has(keyOfEntry(entry)));
  const added = entries.filter((entry) => !present.has(keyOfEntry(entry)));
  if (added.length > 0) {
    if (isSeq(list)) {
      for (const entry of added) {
        list.add(document.createNode(entry));
      }
    } else {
      document.set("model_list", document.createNode(added));
    }
    writeDurably(path, document.toString({ lineWidth: 0 }), modeOf(path));
  }
  return { added, known };
}

function open(path: string): Document {
  let text = "";
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) !== "ENOENT") {
      throw error;
    }
  }
  const lines = new LineCounter();
  const document: Document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
  });
  const error = document.errors[0];
  if (error !== undefined) {
    throw new Failure(
      `${path}:${lines.linePos(error.pos[0]).line}: invalid YAML (${error.message}): fix it, then run the command again.`,
    );
  }
  if (document.contents === null) {
    document.contents = document.createNode({});
    if (text === "") {
      document.commentBefore = HEADING;
    }
  }
  if (!isMap(document.contents)) {
    throw new Failure(
      `${path} must contain a mapping such as "model_list:": fix it, then run the command again.`,
    );
  }
  return document;
}

function keyOf(document: Document, item: unknown): string {
  const { provider_params, litellm_params } = recordOf(
    isMap(item) ? item.toJS(document) : item,
  );
  const { model, api_base } = recordOf(provider_params ?? litellm_params);
  return `${String(model)} ${String(api_base)}`;
}

function keyOfEntry({ provider_params }: Entry): string {
  return `${provider_params.model} ${provider_params.api_base}`;
}

/** It may later contain provider keys, so a new file is readable only by its owner. */
function modeOf(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? 0o600 : stat.mode & 0o777;
}
