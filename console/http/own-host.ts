import { isIP } from "node:net";
import { hostname } from "node:os";

/** Endings that no public name server answers for. */
const LOCAL_ENDINGS = [
  ".localhost",
  ".local",
  ".lan",
  ".home.arpa",
  ".internal",
];

/**
 * Whether a Host header names this supervisor: an address, a name of this machine or of a local network, or the name that
 * SUPERVISOR_PUBLIC_URL says. Any other name can be pointed here by an attacker, whose page would then share the supervisor's origin.
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
