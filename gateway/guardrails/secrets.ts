import type { GuardrailAction } from "../config/types.ts";
import type { Finding, LocalChecking } from "./guard.ts";

export const REDACTED = "[REDACTED]";
/** The rule by which a comment in the text switches detectors off: left out, since callers write the text. */
const COMMENT_RULE = "@secretlint/secretlint-rule-filter-comments";
const OPTIONS: Readonly<Record<string, object>> = {
  // Ids of access keys too, not only the secrets.
  "@secretlint/secretlint-rule-aws": { enableIDScanRule: true },
};

/** Finds keys, tokens and private keys by the detectors of secretlint. */
export function secretsChecking(action: GuardrailAction): LocalChecking {
  return {
    kind: "local",
    async find(text, from) {
      detectors ??= loadDetectors();
      const detect = await detectors;
      // Context does not help these detectors, and what starts in it was checked before.
      const found = await detect(text.slice(from));
      return found.map(({ id, range: [start, end] }): Finding => ({
        start: start + from,
        end: end + from,
        name: id,
        action,
        replacement: REDACTED,
      }));
    },
  };
}

interface Detected {
  readonly id: string;
  readonly range: readonly [number, number];
}

type Detect = (text: string) => Promise<readonly Detected[]>;

let detectors: Promise<Detect> | undefined;

/** Loaded at the first use: most gateways do not need it. */
async function loadDetectors(): Promise<Detect> {
  const [{ lintSource }, { secretLintProfiler }, { rules }] = await Promise.all(
    [
      import("@secretlint/core"),
      import("@secretlint/profiler"),
      import("@secretlint/secretlint-rule-preset-recommend"),
    ],
  );
  // It would keep a record of each check.
  secretLintProfiler.setEnabled(false);
  const config = {
    rules: rules
      .filter(({ meta }) => meta.id !== COMMENT_RULE)
      .map((rule) => ({
        id: rule.meta.id,
        rule,
        options: OPTIONS[rule.meta.id] ?? {},
      })),
  };
  return async (content) => {
    const { messages } = await lintSource({
      source: {
        content,
        filePath: "text.txt",
        ext: ".txt",
        contentType: "text",
      },
      options: { config, noPhysicFilePath: true },
    });
    return messages.map(({ messageId, range }) => ({ id: messageId, range }));
  };
}
