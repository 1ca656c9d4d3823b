import { readFileSync } from "node:fs";
import { isMap, parseDocument } from "yaml";
import type { HearthConfig } from "./config/config-schema.ts";
import { inProject, readNamedFile } from "./project-files.ts";

const SHIPPED_FILE = "config/gateway.yaml";
const OPERATORS_FILE = "config/gateway.local.yaml";

/** The gateway's settings: one file and a layer over it. Both may contain keys. */
export interface GatewaySettings {
  readonly file: string;
  readonly layer: string;
}

/**
 * The file named by the operator with the stack's decisions over it; or the shipped file with the stack's decisions and,
 * with precedence over all but firm ones, the operator's layer. Throws one sentence for an unusable file.
 */
export function readGatewaySettings(
  { gatewayConfig }: Pick<HearthConfig, "gatewayConfig">,
  decisions: Readonly<Record<string, unknown>>,
  operators = OPERATORS_FILE,
): GatewaySettings {
  const own = gatewayConfig === undefined ? readOperatorsLayer(operators) : "";
  const file = readNamedFile(
    "hearth:gatewayConfig",
    gatewayConfig ?? SHIPPED_FILE,
  );
  rejectInclude(file, gatewayConfig ?? SHIPPED_FILE);
  rejectInclude(own, operators);
  return {
    file,
    layer: addGeneralSettings(decisions, own, operators),
  };
}

/** A container gets these texts alone. */
function rejectInclude(yaml: string, name: string): void {
  const { contents } = parseDocument(yaml);
  if (isMap(contents) && contents.has("include")) {
    throw new Error(
      `${name} includes other files, which are not deployed: write their contents into this file, then run up again.`,
    );
  }
}

/** The text of the operator's layer over the shipped file; "" if it is missing or blank. */
export function readOperatorsLayer(path = OPERATORS_FILE): string {
  try {
    const text = readFileSync(inProject(path), "utf8");
    return text.trim() === "" ? "" : text;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") {
      return "";
    }
    throw new Error(
      `${path} cannot be read (${code}): make it readable or remove it, then run up again.`,
      { cause: error },
    );
  }
}

/** Decisions with precedence over the operator's layer: Docker's stop timeout is derived from this one. */
const FIRM: readonly string[] = ["drain_timeout"];

/** A layer's YAML with `general_settings` completed: firm settings replace its own, others fill gaps. */
function addGeneralSettings(
  added: Readonly<Record<string, unknown>>,
  yaml: string,
  name: string,
): string {
  const layer = parseDocument(yaml);
  const [mistake] = layer.errors;
  if (mistake !== undefined) {
    throw new Error(
      `${name}: invalid YAML (${mistake.message.split("\n")[0]?.replace(/:$/, "")}): fix it, then run up again.`,
    );
  }
  const section = "general_settings";
  const isLayer = layer.contents === null || isMap(layer.contents);
  const general = isLayer ? (layer.get(section) ?? null) : null;
  if (!isLayer || (general !== null && !isMap(general))) {
    throw new Error(
      `${name} must be a mapping${isLayer ? ` in ${section}` : ", with keys such as model_list"}: fix it, then run up again.`,
    );
  }
  if (general === null) {
    layer.set(section, layer.createNode(added));
  } else {
    for (const [key, value] of Object.entries(added)) {
      if (FIRM.includes(key) || !layer.hasIn([section, key])) {
        layer.setIn([section, key], layer.createNode(value));
      }
    }
  }
  return String(layer);
}
