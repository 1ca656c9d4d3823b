import { problemAt, type Reading } from "../../core/config/reading.ts";
import { locate } from "../../core/config/tree.ts";
import { decodePercent } from "../../core/percent-decoding.ts";
import { secret, type Secret } from "./secret.ts";

/** `name=value,name=value` of a variable, as OpenTelemetry writes headers and attributes: values are percent-encoded. */
export function pairsOf(text: string | null): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const pair of (text ?? "").split(",")) {
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(0, at)).trim();
    if (name !== "") {
      pairs[name] = decodePercent(pair.slice(at + 1).trim());
    }
  }
  return pairs;
}

/** The headers of a section, by lower-case name; one whose variable is unset is reported and not sent. */
export function readHeaders(
  reading: Reading,
  section: readonly string[],
  headers: Readonly<Record<string, unknown>>,
): Readonly<Record<string, Secret>> {
  const path = [...section, "headers"];
  const { node } = locate(reading.root, path);
  for (const [name, entry] of node?.kind === "map" ? node.entries : []) {
    if (entry.node.kind === "scalar" && entry.node.unset !== null) {
      reading.warnings.push(
        problemAt(
          reading,
          [...path, name],
          `${entry.node.unset} is not set; the header is not sent`,
        ),
      );
    }
  }
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [name.toLowerCase(), secret(String(value))]),
  );
}
