import { createPrivateKey, X509Certificate } from "node:crypto";

/** A mistake in one of the two settings. */
interface CertificateMistake {
  readonly setting: "edgeCertificate" | "edgeKey";
  readonly what: string;
}

/** PEM, both readable. */
interface OwnCertificate {
  readonly certificate: string;
  readonly key: string;
}

/**
 * Mistakes in the operator's own certificate. With the key of another certificate, neither edge would start; with other names, every
 * client would reject it.
 */
export function certificateMistakes(
  { certificate, key }: OwnCertificate,
  hostnames: readonly string[],
): readonly CertificateMistake[] {
  const read = new X509Certificate(certificate);
  // The common name, which clients ignore, is ignored.
  const missing = hostnames.filter(
    (name) => read.checkHost(name, { subject: "never" }) === undefined,
  );
  return [
    ...(missing.length === 0
      ? []
      : [
          {
            setting: "edgeCertificate" as const,
            what: `is not valid for ${missing.join(" and ")}`,
          },
        ]),
    ...(read.checkPrivateKey(createPrivateKey(key))
      ? []
      : [
          {
            setting: "edgeKey" as const,
            what: "is not the key of edgeCertificate",
          },
        ]),
  ];
}

/** The day on which a certificate expired, such as "2026-11-20"; undefined for a valid one. PEM, readable. */
export function expiredOn(certificate: string): string | undefined {
  const { validToDate } = new X509Certificate(certificate);
  return validToDate.getTime() > Date.now()
    ? undefined
    : validToDate.toISOString().slice(0, 10);
}
