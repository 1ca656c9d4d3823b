import { isIP } from "node:net";
import { hostname } from "node:os";

/** Suffixes that public name servers do not resolve. */
const LOCAL_ENDINGS = [
  ".localhost",
  ".local",
  ".lan",
  ".home.arpa",
  ".internal",
];

/**
 * Whether a Host header names this supervisor: an address, a name of this machine or of a local network, or the name that
 * in SUPERVISOR_PUBLIC_URL. An attacker can point any other name here, and a page under it would share the supervisor's origin.
 */
export function isOwnHost(
  host: string | undefined,
  publicUrl: string | undefined,
): boolean {
  const name = nameIn(`http://${host ?? ""}`);
  if (name === undefined) {
    return false;
  }
  return (
    isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0 ||
    !name.includes(".") ||
    LOCAL_ENDINGS.some((ending) => name.endsWith(ending)) ||
    name === hostname().toLowerCase() ||
    name === nameIn(publicUrl ?? "")
  );
}

function nameIn(url: string): string | undefined {
  return URL.canParse(url)
    ? new URL(url).hostname.replace(/\.$/, "")
    : undefined;
}
