import { z } from "zod";
import { DAY_MS } from "../../core/duration.ts";
import { readShownCertificate } from "../checks/shown-certificate.ts";
import { textOf, requestReason } from "../../core/failure.ts";
import { asExpected } from "./couch-answers.ts";
import { Database } from "./database.ts";
import {
  bodyFinding,
  heartbeatFinding,
  memberFindings,
} from "./doctor-member.ts";
import {
  REQUEST_TIMEOUT_MS,
  within,
  type DoctorOptions,
  type Finding,
} from "./finding.ts";
import { probe } from "./probe.ts";
import { readRoster } from "./roster.ts";

const EXPIRES_SOON_MS = 14 * DAY_MS;
const ORIGINS = [
  "app://obsidian.md",
  "capacitor://localhost",
  "http://localhost",
];

/** Checks the store as a device uses it, through its public address. Makes no change visible to devices. */
export async function examine(
  options: DoctorOptions,
): Promise<readonly Finding[]> {
  const certificate = await certificateFinding(options);
  const reachable = await reachFinding(options);
  if (reachable.state === "bad") {
    return [certificate, reachable];
  }
  const found = [certificate, reachable];
  for (const origin of ORIGINS) {
    found.push(await preflightFinding(options, origin));
  }
  found.push(...(await settingsFindings(options)));
  found.push(...(await lockFindings(options)));
  // Sequential, and aborted after a rejected password: five wrong ones would lock the user out.
  const access = await memberFindings(options);
  found.push(...access);
  const canSync = access.every(({ state }) => state === "fine");
  if (canSync) {
    found.push(
      ...(await Promise.all([bodyFinding(options), heartbeatFinding(options)])),
    );
  } else {
    for (const name of ["large documents", "heartbeat"]) {
      found.push({
        name,
        state: "skipped",
        text: "requires a member that can sync: fix that first.",
      });
    }
  }
  return found;
}

/** A rebuild by a member reports success and leaves the vault locked. */
async function lockFindings({
  couch,
  vault,
}: DoctorOptions): Promise<readonly Finding[]> {
  const name = "lock";
  try {
    const { locked, remarks } = await readRoster(new Database(couch, vault));
    return locked
      ? [{ name, state: "warning", text: remarks[0]! }]
      : [{ name, state: "fine", text: "no device has locked the vault" }];
  } catch (error) {
    return [
      {
        name,
        state: "skipped",
        text: `lock status unknown (${requestReason(error)}).`,
      },
    ];
  }
}

async function certificateFinding({
  url,
  now,
  signal,
}: DoctorOptions): Promise<Finding> {
  const name = "certificate";
  if (url.startsWith("http:")) {
    return {
      name,
      state: "warning",
      text: `${url} is not encrypted: desktops can sync, phones and tablets need HTTPS with a trusted certificate.`,
    };
  }
  try {
    const { certificate, distrust } = await readShownCertificate(
      new URL(url),
      within(signal, REQUEST_TIMEOUT_MS),
    );
    const ends = Date.parse(certificate.validTo);
    const issuer =
      /^(?:O|CN)=(.*)$/m.exec(certificate.issuer)?.[1] ?? "unknown";
    const until = new Date(ends).toISOString().slice(0, 10);
    if (ends < now()) {
      return {
        name,
        state: "bad",
        text: `the certificate expired on ${until}: renew it.`,
      };
    }
    if (distrust !== undefined) {
      return {
        name,
        state: "bad",
        text: `the certificate (issued by ${issuer}) is not trusted (${distrust}), and phones reject it: use a certificate of a public authority with its full chain, or install this one on every device.`,
      };
    }
    return ends - now() < EXPIRES_SOON_MS
      ? {
          name,
          state: "warning",
          text: `the certificate expires on ${until}: check its renewal.`,
        }
      : {
          name,
          state: "fine",
          text: `trusted, issued by ${issuer}, valid until ${until}`,
        };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `no certificate found at ${url} (${requestReason(error)}): check that the address serves HTTPS.`,
    };
  }
}

async function reachFinding({ url, signal }: DoctorOptions): Promise<Finding> {
  const name = "reachable";
  try {
    const { status, body } = await probe(url, {
      method: "GET",
      path: "/_up",
      signal: within(signal, REQUEST_TIMEOUT_MS),
    });
    if (status === 200 && body.includes('"ok"')) {
      return { name, state: "fine", text: `${url}/_up responds with ok` };
    }
    return {
      name,
      state: "bad",
      text: `${url}/_up returned ${status}, not the response of a healthy notes store: check the address.`,
    };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `no response from ${url} (${requestReason(error)}): check the address, the proxy, and whether the devices' network can reach it.`,
    };
  }
}

async function preflightFinding(
  { url, vault, signal }: DoctorOptions,
  origin: string,
): Promise<Finding> {
  const name = `preflight ${origin}`;
  try {
    const { status, headers } = await probe(url, {
      method: "OPTIONS",
      path: `/${encodeURIComponent(vault)}`,
      headers: {
        origin,
        "access-control-request-method": "GET",
        "access-control-request-headers": "authorization,content-type",
      },
      signal: within(signal, REQUEST_TIMEOUT_MS),
    });
    const allowed = headers["access-control-allow-origin"];
    const credentials = headers["access-control-allow-credentials"];
    if (
      status < 300 &&
      allowed === origin &&
      credentials === "true" &&
      String(headers["access-control-allow-headers"]).includes("authorization")
    ) {
      return { name, state: "fine", text: `${status}, allowed` };
    }
    return {
      name,
      state: "bad",
      text: `the preflight returned ${status} with access-control-allow-origin ${String(allowed)}: configure the proxy to forward OPTIONS and to add no CORS headers.`,
    };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `no response to the preflight (${requestReason(error)}). Run \`hearth status\` and check the proxy's log.`,
    };
  }
}

const config = z.record(z.string(), z.record(z.string(), z.string()));

/** The settings that the plugin's own check requires. */
const REQUIRED_SETTINGS: readonly (readonly [
  string,
  string,
  (value: string) => boolean,
])[] = [
  ["chttpd", "require_valid_user", isTrue],
  ["chttpd_auth", "require_valid_user", isTrue],
  ["httpd", "WWW-Authenticate", (value) => value.includes("Basic")],
  ["httpd", "enable_cors", isTrue],
  ["chttpd", "enable_cors", isTrue],
  ["chttpd", "max_http_request_size", (value) => Number(value) >= 4294967296],
  ["couchdb", "max_document_size", (value) => Number(value) >= 50_000_000],
  ["cors", "credentials", isTrue],
  [
    "cors",
    "origins",
    (value) =>
      value === "*" ||
      ORIGINS.every((origin) => value.split(",").includes(origin)),
  ],
];

async function settingsFindings({
  couch,
  signal,
}: DoctorOptions): Promise<readonly Finding[]> {
  const name = "server settings";
  try {
    const sections = asExpected(
      config,
      await couch.ask("GET", "/_node/_local/_config", { signal }),
    );
    const wrong = REQUIRED_SETTINGS.filter(
      ([section, key, fits]) => !fits(sections[section]?.[key] ?? ""),
    );
    return wrong.length === 0
      ? [{ name, state: "fine", text: "as the plugin requires" }]
      : wrong.map(([section, key]) => ({
          name,
          state: "bad",
          text: `[${section}] ${key} is ${JSON.stringify(sections[section]?.[key] ?? null)}, which the plugin's check rejects: fix the server's ini file.`,
        }));
  } catch (error) {
    return [{ name, state: "bad", text: textOf(error) }];
  }
}

function isTrue(value: string): boolean {
  return value === "true";
}
