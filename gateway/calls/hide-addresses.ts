import { isIP } from "node:net";
import { isRecord, parseRecord, recordOf } from "../../core/json.ts";
import { isPrivateHost } from "../../core/network-addresses.ts";
import { roleOf } from "../access/actor.ts";
import type { Caller } from "../access/callers.ts";
import type { Gateway } from "../gateway.ts";
import type { Catalog } from "../routing/catalog.ts";

/** An error's text for a caller: internal addresses are shown only to administrators. */
export function errorTextFor(
  caller: Caller,
  { catalog }: Pick<Gateway, "catalog">,
  text: string,
): string {
  return isAdministrator(caller) ? text : hideAddresses(catalog, text);
}

/** The same of the data of an event; what a failed response repeats is the caller's and the model's own. */
export function errorEventFor(
  caller: Caller,
  gateway: Pick<Gateway, "catalog">,
  data: string,
): string {
  const event = parseRecord(data);
  if (event === null || !isRecord(event["response"])) {
    return errorTextFor(caller, gateway, data);
  }
  const { instructions, output, tools, ...rest } = event["response"];
  const text = JSON.stringify({ ...event, response: rest });
  const shown = parseRecord(errorTextFor(caller, gateway, text));
  const response = recordOf(shown?.["response"]);
  return JSON.stringify({
    ...shown,
    response: { ...response, instructions, output, tools },
  });
}

function isAdministrator(caller: Caller): boolean {
  return caller.kind === "master" || roleOf(caller).startsWith("proxy_admin");
}

/**
 * URLs, IPv6 addresses in brackets and bare, and names with or without a port. Schemes have at most 32 characters: with any number
 * of them, a long word, which callers can make providers repeat, would take quadratic time.
 */
const CANDIDATES =
  /[a-z][a-z0-9+.-]{0,31}:\/\/[^\s"'<>()\\`,;]*[^\s"'<>()\\`,;:.]|\[[0-9a-f:.]+\](?::\d+)?|(?<![\w:.-])(?:[0-9a-f]*:){2,7}[0-9a-f.]*(?!:?\w)|(?<![\w:.-])(?:[a-z0-9-]+\.)*[a-z0-9-]+(?::\d{2,5})?(?!:?\w)/gi;

/** A text without the addresses of deployments, IP addresses and names of private networks; public links stay. */
export function hideAddresses(catalog: Catalog, text: string): string {
  const own = hostsOf(catalog);
  return text.replaceAll(CANDIDATES, (candidate) =>
    isInternal(candidate, own) ? "the provider" : candidate,
  );
}

function isInternal(candidate: string, own: ReadonlySet<string>): boolean {
  if (candidate.includes("://")) {
    const host = hostOf(candidate);
    return host === null || own.has(host) || isIpOrPrivate(host);
  }
  const [, bracketed, bare = "", port] =
    /^(?:\[(.+)\]|(.+?))(?::(\d+))?$/.exec(candidate) ?? [];
  const host = (bracketed ?? bare).toLowerCase();
  if (isIP(candidate) !== 0 || isIP(host) !== 0 || own.has(host)) {
    return true;
  }
  // A word without a dot is an address only if a port follows: `vllm-0:8000`.
  const isAddress = port !== undefined || host.includes(".");
  return isAddress && /[a-z]/.test(host) && isPrivateHost(host);
}

function isIpOrPrivate(host: string): boolean {
  return isIP(host) !== 0 || isPrivateHost(host);
}

function hostOf(url: string): string | null {
  return URL.canParse(url)
    ? new URL(url).hostname.replace(/^\[|\]$/g, "").toLowerCase()
    : null;
}

const hosts = new WeakMap<Catalog, ReadonlySet<string>>();

function hostsOf(catalog: Catalog): ReadonlySet<string> {
  const known = hosts.get(catalog);
  if (known !== undefined) {
    return known;
  }
  const found = new Set(
    catalog.deployments
      .map(({ apiBase }) => hostOf(apiBase))
      .filter((host) => host !== null),
  );
  hosts.set(catalog, found);
  return found;
}
