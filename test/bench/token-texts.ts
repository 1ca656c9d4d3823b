import { readFileSync } from "node:fs";

const PROSE = fileOf("../../docs/performance.md");
const CODE = fileOf("./load-requests.ts");
/** Texts with known pieces, as in a repeated prompt, and texts with new words. */
export const TEXTS: Readonly<Record<string, (call: number) => string>> = {
  "prose, 2,000 characters": () => PROSE.slice(0, 2_000),
  "code, 2,000 characters": () => CODE.slice(0, 2_000),
  JSON: (call) => JSON.stringify({ call, at: Date.now(), of: [1.5, null] }),
  "German, new words": (call) =>
    newWords(call, ["Straßen", "prüfung", "ämter"]),
  "Japanese, new runs": (call) =>
    newWords(call, ["東京都", "情報処理", "ひらがな"]),
  "hexadecimal, new": (call) => newWords(call, ["9f86d081884c7d65", "ab12"]),
};

function fileOf(path: string): string {
  return readFileSync(new URL(path, import.meta.url), "utf8");
}

/** Sixty words that differ from call to call. */
function newWords(call: number, parts: readonly string[]): string {
  let text = "";
  for (let word = 0; word < 60; word++) {
    const number = ((call * 60 + word) * 2_654_435_761) >>> 0;
    const letters = number.toString(36).replaceAll(/\d/g, "e");
    text += `${parts[word % parts.length]}${letters} `;
  }
  return text;
}
