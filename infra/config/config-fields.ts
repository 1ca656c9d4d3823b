import { isIP } from "node:net";
import { z } from "zod";
import { isPrivateAddress } from "../../core/network-addresses.ts";

declare module "zod" {
  /** Metadata of a setting; `description` is its documentation in the annotated stack file. */
  interface GlobalMeta {
    /** A valid value as typed in a shell, which runs `$(…)` and reads `< FILE`. Default: the setting's default. */
    readonly example?: string;
    /** Of a secret: the command that prints one. */
    readonly source?: string;
    /** Of a secret without a source: what `pulumi config set` prompts for. */
    readonly asks?: string;
    /** The command that sets it. */
    readonly setBy?: string;
    /** Of a group with names chosen by the operator: an example. */
    readonly entry?: string;
  }
}

/** A deployment waits that long; timers of Node.js end at once after 24 days. */
const MAX_SECONDS = 24 * 3600;

/** "30s", "2m": whole seconds once read. */
export const seconds = z
  .string()
  .regex(/^\d+[smh]$/, "must be a duration such as 120s, 2m or 1h")
  .transform(
    (text) =>
      Number.parseInt(text, 10) *
      (text.endsWith("h") ? 3600 : text.endsWith("m") ? 60 : 1),
  )
  .refine((duration) => duration <= MAX_SECONDS, "must be at most 24h");

export const wholeNumber = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.coerce.number(error).int(error).min(min, error).max(max, error);
};

export const hostName = z.enum(["a", "b"], "must be a or b");

export const address = z
  .string("must be an IP address of that host")
  .refine((text) => isIP(text) !== 0, {
    error: "must be an IP address of that host",
    abort: true,
  })
  .refine((text) => text !== "0.0.0.0" && text !== "::", {
    error:
      "must be one address of that host, since everything would be open to every network",
    abort: true,
  });

export const privateAddress = address
  .refine(isPrivateAddress, {
    error:
      "must be a private address (LAN or VPN): Postgres, Redis and the gateways listen there",
    abort: true,
  })
  .refine(
    (text) => !text.startsWith("127."),
    "must be an address that the other host reaches: loopback stays on that host",
  )
  .refine(
    (text) => isIP(text) === 4,
    "must be an IPv4 address: containers connect to it, and their networks have IPv4 only",
  );

/** All login roles that the program creates; roles of the operator are not managed. */
export const LOGIN_ROLE_NAMES = [
  "gateway_a",
  "gateway_b",
  "supervisor",
  "backup",
] as const;

const role = `(${LOGIN_ROLE_NAMES.join("|")})`;

/** Login roles by name; "yes" means all of them, "none" an adoption that finds none. */
export const roleNames = z
  .string("must be no, yes, or names of roles")
  .regex(
    new RegExp(`^(no|none|yes|${role}(,${role})*)$`),
    "must be no, yes, or names of roles such as gateway_a,supervisor",
  );

/** Inserted into URLs and files without encoding. */
export const password = z
  .string("must be a text")
  .regex(
    /^[A-Za-z0-9_-]{20,}$/,
    "must be at least 20 letters, digits, - and _ (it is part of addresses)",
  )
  .meta({ source: "openssl rand -hex 24" });

/** A text that `read` accepts. */
export const readableBy = (read: (text: string) => unknown, error: string) =>
  z.string().refine((text) => {
    try {
      read(text);
      return true;
    } catch {
      return false;
    }
  }, error);

export const webAddress = z
  .url({
    protocol: /^https?$/,
    error: "must be an address such as http://192.168.1.10:11434",
  })
  .refine(
    (text) => !/^https?:\/\/(localhost|127\.|0\.0\.0\.0|\[::1?\])/i.test(text),
    "must not be a loopback address: in a container that is the container itself",
  );

export const dockerEndpoint = z
  .string("must be a Docker address")
  .regex(
    /^(ssh:\/\/([^/:@]+@)?(\[[\da-f:]+\]|[^/:@[\]]+)(:\d+)?|unix:\/\/\/.+|tcp:\/\/(\[[\da-f:]+\]|[^/:[\]]+):\d+)$/i,
    "must be ssh://USER@HOST, unix:///var/run/docker.sock or tcp://HOST:PORT (an IPv6 address in brackets)",
  )
  .refine((text) => {
    const [, port = "1"] = /^(?:ssh|tcp):.*:(\d+)$/i.exec(text) ?? [];
    return Number(port) >= 1 && Number(port) <= 65_535;
  }, "must have a port from 1 to 65535");

export const absolutePath = z
  .string("must be an absolute path")
  .regex(/^\/[\w./-]+$/, "must be an absolute path on that host");

/** Directories of the operating system, and those in which others have theirs. */
const SYSTEM_DIRECTORY =
  /^\/+((bin|boot|dev|etc|lib\d*|proc|run|sbin|sys)(\/|$)|(home|media|mnt|opt|root|srv|tmp|usr|var)\/*$)/;

/** Location of data: a volume of the program, or a directory of the host. */
export const volumeOrPath = z
  .string("must be volume, or an absolute path on the host")
  .regex(
    /^(volume|\/[\w./-]+)$/,
    "must be volume, or an absolute path on the host",
  )
  .refine(
    (text) => !/(^|\/)\.\.(\/|$)/.test(text) && !SYSTEM_DIRECTORY.test(text),
    "must be a separate directory such as /srv/hearth (no system directory, no ..), since it belongs to the user of the container",
  );

export const dnsName = z
  .string("must be a host name")
  .regex(
    /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/,
    "must be a host name in lower case such as hearth.example.org",
  );

/** `name:tag@sha256:…`; whether the digest may be missing is decided by `imagesWithoutDigest`. */
export const imageReference = z
  .string("must be an image")
  .regex(
    /^[a-z0-9][\w.:/-]*(@sha256:[0-9a-f]{64})?$/,
    "must be an image such as docker.io/library/redis:8@sha256:<64 hex digits>",
  )
  .meta({ example: "NAME:TAG@sha256:DIGEST" });

export const mebibytes = (min: number) => wholeNumber(min, 1_048_576);
