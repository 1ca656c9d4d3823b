import { hash } from "node:crypto";

/**
 * The Content-Security-Policy of a page: the style and the scripts in it, by their hashes, requests and forms to its own origin,
 * and nothing else.
 */
export function pagePolicy(style: string, scripts: readonly string[]): string {
  const allowed = scripts.map(sourceOf).join(" ");
  return [
    "default-src 'none'",
    `style-src ${sourceOf(style)}`,
    `script-src ${allowed === "" ? "'none'" : allowed}`,
    "img-src data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function sourceOf(text: string): string {
  return `'sha256-${hash("sha256", text, "base64")}'`;
}
