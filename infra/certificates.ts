// Required by the library below, before it is loaded.
import "reflect-metadata";
import {
  createECDH,
  createPrivateKey,
  createPublicKey,
  hash,
  hkdfSync,
  type KeyObject,
} from "node:crypto";
import { isIP } from "node:net";
import * as x509 from "@peculiar/x509";
import { all, unsecret, type Input, type Output } from "@pulumi/pulumi";
import { DAY_MS } from "../core/duration.ts";
import type { HearthConfig, HostName } from "./config/config-schema.ts";
import type { ProgramConfig } from "./config/program-config.ts";
import type { UploadedFile } from "./container.ts";
import { everyAddress } from "./hosts.ts";

/** PEM. */
export interface ServerCertificate {
  readonly certificate: Input<string>;
  /** Secret. */
  readonly key: Input<string>;
}

interface IssuedCertificate extends ServerCertificate {
  readonly certificate: string;
  readonly key: string;
}

interface Authority {
  /** The only certificate that clients trust. */
  readonly authority: string;
  readonly issue: (
    name: string,
    alternatives: readonly string[],
  ) => Promise<IssuedCertificate>;
}

/** The certificates of a running stack. */
export interface Certificates<Certificate = ServerCertificate> {
  /** PEM; trusted by clients. */
  readonly authority: Input<string>;
  readonly postgres: Certificate;
  readonly redis: Certificate;
  /** For each host's TLS endpoint. */
  readonly tls: Readonly<Record<HostName, Certificate>>;
}

/** A certificate is renewed by the first `up` of a new period, and is valid for this period and the next. */
const PERIOD_MS = 365 * DAY_MS;
/** RSASSA-PKCS1-v1_5 is deterministic; ECDSA is not. */
const SIGNATURE = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" } as const;
const CURVE = { name: "ECDSA", namedCurve: "P-256" } as const;
const ISSUER = "CN=Hearth";

/**
 * The stack's own authority. Everything it issues, keys included, is derived from its key, the names and the period: nothing
 * has to be stored, and each run of the program within a period produces the same bytes, so nothing is replaced in between.
 */
export async function openAuthority(
  caKey: string,
  now = Date.now(),
): Promise<Authority> {
  const key = createPrivateKey(caKey);
  const signingKey = key.toCryptoKey(SIGNATURE, false, ["sign"]);
  const authority = await x509.X509CertificateGenerator.create({
    serialNumber: "01",
    subject: ISSUER,
    issuer: ISSUER,
    notBefore: new Date("2026-01-01"),
    notAfter: new Date("2126-01-01"),
    publicKey: createPublicKey(key).toCryptoKey(SIGNATURE, true, ["verify"]),
    signingKey,
    signingAlgorithm: SIGNATURE,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
  const period = Math.floor(now / PERIOD_MS);
  return {
    authority: pem(authority.toString("pem")),
    async issue(subject, alternatives) {
      const own = derivedKey(key, `${subject} ${period}`);
      const certificate = await x509.X509CertificateGenerator.create({
        serialNumber: serialOf([subject, ...alternatives, String(period)]),
        subject: `CN=${subject}`,
        issuer: ISSUER,
        // Clocks differ.
        notBefore: new Date(period * PERIOD_MS - DAY_MS),
        notAfter: new Date((period + 2) * PERIOD_MS),
        publicKey: createPublicKey(own).toCryptoKey(CURVE, true, ["verify"]),
        signingKey,
        signingAlgorithm: SIGNATURE,
        extensions: buildServerExtensions(alternatives),
      });
      return {
        certificate: pem(certificate.toString("pem")),
        key: String(own.export({ type: "pkcs8", format: "pem" })),
      };
    },
  };
}

function buildServerExtensions(
  alternatives: readonly string[],
): x509.Extension[] {
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension([
      x509.ExtendedKeyUsage.serverAuth,
      x509.ExtendedKeyUsage.clientAuth,
    ]),
    new x509.SubjectAlternativeNameExtension(
      [...new Set(alternatives)].map((value) => ({
        type: isIP(value) === 0 ? "dns" : "ip",
        value,
      })),
    ),
  ];
}

/** The servers' certificates, for the names that their clients use. */
export async function issueCertificates({
  caKey,
  hosts,
  placement,
}: Pick<HearthConfig, "caKey" | "hosts" | "placement">): Promise<
  Certificates<IssuedCertificate> & { readonly authority: string }
> {
  const { authority, issue } = await openAuthority(caKey);
  const tls = (host: HostName) =>
    issue(`${TLS_ENDPOINT_NAME}-${host}`, everyAddress(hosts[host]));
  return {
    authority,
    postgres: await issue("postgres", postgresNames({ hosts, placement })),
    redis: await issue("redis", ["redis", hosts[placement.redis].address]),
    tls: { a: await tls("a"), b: await tls("b") },
  };
}

/** The same as outputs: of everything derived from the authority's key, only the servers' keys stay secret. */
export function certificatesOf({
  caKey,
  hosts,
  placement,
}: Pick<ProgramConfig, "caKey" | "hosts" | "placement">): Certificates {
  const issued = caKey.apply((key) =>
    issueCertificates({ caKey: key, hosts, placement }),
  );
  const keepKey = (
    of: (all: Certificates<IssuedCertificate>) => IssuedCertificate,
  ): ServerCertificate => ({
    certificate: unsecret(issued.apply((each) => of(each).certificate)),
    key: issued.apply((each) => of(each).key),
  });
  return {
    authority: unsecret(issued.authority),
    postgres: keepKey(({ postgres }) => postgres),
    redis: keepKey(({ redis }) => redis),
    tls: { a: keepKey(({ tls }) => tls.a), b: keepKey(({ tls }) => tls.b) },
  };
}

/** The last two are the local end of the operator's tunnel. */
export function postgresNames({
  hosts,
  placement,
}: Pick<HearthConfig, "hosts" | "placement">): readonly string[] {
  const { address } = hosts[placement.postgres];
  return ["postgres", address, "localhost", "127.0.0.1"];
}

/** Their PEM texts, for the expiry check. */
export function allCertificates({
  postgres,
  redis,
  tls,
}: Certificates): Output<string> {
  return all(
    [postgres, redis, tls.a, tls.b].map(({ certificate }) => certificate),
  ).apply((texts) => texts.join(""));
}

/** Alias of the container and name of its files. */
export const TLS_ENDPOINT_NAME = "tls";

const DIRECTORY = "/run/hearth";
/** Path of the trusted certificate in every container. */
export const authorityFile = `${DIRECTORY}/ca.crt`;

export function authorityUpload(authority: Input<string>): UploadedFile {
  return { path: authorityFile, content: authority, permissions: "0444" };
}

export function serverFile(service: string, part: "crt" | "key"): string {
  return `${DIRECTORY}/${service}.${part}`;
}

export function serverUploads(
  service: string,
  { certificate, key }: ServerCertificate,
  permissions: "0400" | "0440",
): readonly UploadedFile[] {
  return [
    {
      path: serverFile(service, "crt"),
      content: certificate,
      permissions: "0444",
    },
    { path: serverFile(service, "key"), content: key, permissions },
  ];
}

/** A P-256 key that can only be derived with the authority's own. */
function derivedKey(key: KeyObject, of: string): KeyObject {
  const secret = key.export({ type: "pkcs8", format: "der" });
  const d = Buffer.from(hkdfSync("sha256", secret, "hearth", of, 32));
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(d);
  const point = ecdh.getPublicKey();
  return createPrivateKey({
    format: "jwk",
    key: {
      kty: "EC",
      crv: CURVE.namedCurve,
      d: d.toString("base64url"),
      x: point.subarray(1, 33).toString("base64url"),
      y: point.subarray(33).toString("base64url"),
    },
  });
}

/** Unique per authority; a positive number of at most 20 bytes. */
function serialOf(parts: readonly string[]): string {
  return `4${hash("sha256", JSON.stringify(parts)).slice(1, 32)}`;
}

function pem(text: string): string {
  return `${text.trim()}\n`;
}
