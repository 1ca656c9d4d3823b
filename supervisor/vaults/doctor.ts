import { z } from "zod";
import { readShownCertificate } from "../checks/shown-certificate.ts";
import { textOf } from "../../core/failure.ts";
import { asExpected, openDatabase } from "./database.ts";
import {
  bodyFinding,
  heartbeatFinding,
  memberFindings,
} from "./doctor-member.ts";
import {
  reason,
  USUAL_WAIT_MS,
  within,
  type DoctorAsk,
  type Finding,
} from "./finding.ts";
import { probe } from "./probe.ts";
import { readRoster } from "./roster.ts";

const EXPIRES_SOON_MS = 14 * 86_400_000;
const ORIGINS = [
  "app://obsidian.md",
  "capacitor://localhost",
  "http://localhost",
];

/** Looks at the store as a device does, through its public address. Changes nothing that a device could notice. */
export async function examine(ask: DoctorAsk): Promise<readonly Finding[]> {
  const certificate = await certificateFinding(ask);
  const reached = await reachFinding(ask);
  if (reached.state === "bad") {
    return [certificate, reached];
  }
  const found = [certificate, reached];
  for (const origin of ORIGINS) {
    found.push(await preflightFinding(ask, origin));
  }
  found.push(...(await settingsFindings(ask)));
  found.push(...(await lockFindings(ask)));
  // One after the other, and no more after a refused password: five wrong ones would lock the user out.
  const access = await memberFindings(ask);
  found.push(...access);
  const mayGoOn = access.every(({ state }) => state === "fine");
  if (mayGoOn) {
    found.push(
      ...(await Promise.all([bodyFinding(ask), heartbeatFinding(ask)])),
    );
  } else {
    for (const name of ["large documents", "heartbeat"]) {
      found.push({
        name,
        state: "skipped",
        text: "it needs a member who may sync: mend that first.",
      });
    }
  }
  return found;
}

/** A rebuild by a member says that it is done and leaves the vault locked. */
async function lockFindings({
  couch,
  vault,
}: DoctorAsk): Promise<readonly Finding[]> {
  const name = "lock";
  try {
    const { locked, remarks } = await readRoster(openDatabase(couch, vault));
    return locked
      ? [{ name, state: "warning", text: remarks[0]! }]
      : [{ name, state: "fine", text: "no device has locked the vault" }];
  } catch (error) {
    return [
      {
        name,
        state: "skipped",
        text: `whether a device has locked the vault is not known (${reason(error)}).`,
      },
    ];
  }
}

async function certificateFinding({
  url,
  now,
  signal,
}: DoctorAsk): Promise<Finding> {
  const name = "certificate";
  if (url.startsWith("http:")) {
    return {
      name,
      state: "warning",
      text: `${url} has no encryption: desktops may sync, phones and tablets need HTTPS with a certificate they trust.`,
    };
  }
  try {
    const { certificate, distrust } = await readShownCertificate(
      new URL(url),
      within(signal, USUAL_WAIT_MS),
    );
    const ends = Date.parse(certificate.validTo);
    const issuer =
      /^(?:O|CN)=(.*)$/m.exec(certificate.issuer)?.[1] ?? "unknown";
    const until = new Date(ends).toISOString().slice(0, 10);
    if (ends < now()) {
      return {
        name,
        state: "bad",
        text: `the certificate ended on ${until}: renew it.`,
      };
    }
    if (distrust !== undefined) {
      return {
        name,
        state: "bad",
        text: `the certificate (by ${issuer}) is not trusted (${distrust}): phones refuse it; use one of a known authority, with its whole chain, or install yours on every device.`,
      };
    }
    return ends - now() < EXPIRES_SOON_MS
      ? {
          name,
          state: "warning",
          text: `the certificate ends on ${until}: see that it is renewed.`,
        }
      : {
          name,
          state: "fine",
          text: `trusted, by ${issuer}, until ${until}`,
        };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `no certificate could be read at ${url} (${reason(error)}): see that HTTPS is served there.`,
    };
  }
}

async function reachFinding({ url, signal }: DoctorAsk): Promise<Finding> {
  const name = "reachable";
  try {
    const { status, body } = await probe(url, {
      method: "GET",
      path: "/_up",
      signal: within(signal, USUAL_WAIT_MS),
    });
    if (status === 200 && body.includes('"ok"')) {
      return { name, state: "fine", text: `${url}/_up says ok` };
    }
    return {
      name,
      state: "bad",
      text: `${url}/_up answers ${status}, which is no healthy notes store: see where the address leads.`,
    };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `nothing answers at ${url} (${reason(error)}): see that the address and the proxy are right, and that a device's network reaches it.`,
    };
  }
}

async function preflightFinding(
  { url, vault, signal }: DoctorAsk,
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
      signal: within(signal, USUAL_WAIT_MS),
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
      text: `the answer to the preflight is ${status} with access-control-allow-origin ${String(allowed)}: let the proxy pass OPTIONS on, and add no CORS headers of its own.`,
    };
  } catch (error) {
    return {
      name,
      state: "bad",
      text: `the preflight got no answer (${reason(error)}): see whether the store runs (\`hearth status\`) and what the proxy in front of it logs.`,
    };
  }
}

const config = z.record(z.string(), z.record(z.string(), z.string()));

/** What the plugin's own check looks at, and what it wants. */
const WANTED: readonly (readonly [
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
}: DoctorAsk): Promise<readonly Finding[]> {
  const name = "server settings";
  try {
    const sections = asExpected(
      config,
      await couch.ask("GET", "/_node/_local/_config", { signal }),
    );
    const wrong = WANTED.filter(
      ([section, key, fits]) => !fits(sections[section]?.[key] ?? ""),
    );
    return wrong.length === 0
      ? [{ name, state: "fine", text: "as the plugin wants them" }]
      : wrong.map(([section, key]) => ({
          name,
          state: "bad",
          text: `[${section}] ${key} is ${JSON.stringify(sections[section]?.[key] ?? null)}, which the plugin's check refuses: mend the server's ini.`,
        }));
  } catch (error) {
    return [{ name, state: "bad", text: textOf(error) }];
  }
}

function isTrue(value: string): boolean {
  return value === "true";
}
