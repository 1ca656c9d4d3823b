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
 * Mistakes in the operator's own certificate. With the key of another certificate, neither edge would start; with other names or after
 * its end, every client would reject it. `withoutNew` is a command for operators whose new certificate is not there yet.
 */
export function certificateMistakes(
  { certificate, key }: OwnCertificate,
  hostnames: readonly string[],
  withoutNew?: string,
): readonly CertificateMistake[] {
  const read = new X509Certificate(certificate);
  // The common name, which clients ignore, is ignored.
  const missing = hostnames.filter(
    (name) => read.checkHost(name, { subject: "never" }) === undefined,
  );
  return [
    ...(missing.length === 0
      ? []
      : [mistake(`is not valid for ${missing.join(" and ")}`)]),
    ...(read.validToDate.getTime() > Date.now()
      ? []
      : [
          mistake(
            `expired on ${read.validToDate.toISOString().slice(0, 10)}${withoutNew === undefined ? "" : ` (without a new one: ${withoutNew})`}`,
          ),
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

function mistake(what: string): CertificateMistake {
  return { setting: "edgeCertificate", what };
}
