import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { DAY_MS } from "../../../core/duration.ts";
import { whole } from "../../config/fields.ts";
import { readShownCertificate } from "../shown-certificate.ts";
import { everyCheck } from "./every-check.ts";
import {
  failing,
  okUnless,
  type ProbeContext,
  type ProbeResult,
} from "./probe.ts";

export const certificateCheck = z
  .strictObject({
    ...everyCheck({ every: "1h", recover_after: 1 }),
    kind: z.literal("certificate"),
    url: z
      .url({ protocol: /^https$/, error: "must be an https:// address" })
      .optional(),
    file: z.string().min(1).optional(),
    expect: z
      .strictObject({
        days_above: whole(1, 365).default(14),
        trusted: z.boolean("must be true or false").default(true),
      })
      .prefault({}),
  })
  .refine((check) => (check.url === undefined) !== (check.file === undefined), {
    error: "either url or file is required",
    path: ["kind"],
  });

/** The remaining validity of a certificate: of a server, or of the one that expires first in a file. */
export async function probeCertificate(
  { url, file, expect }: z.output<typeof certificateCheck>,
  { signal, now }: ProbeContext,
): Promise<ProbeResult> {
  const { certificate, distrust } =
    file === undefined
      ? await readShownCertificate(new URL(url ?? ""), signal)
      : {
          certificate: firstToEnd(await readFile(file, "utf8")),
          distrust: undefined,
        };
  const ends = Date.parse(certificate.validTo);
  const days = Math.floor((ends - now) / DAY_MS);
  const text = `${nameOf(certificate)} is valid until ${new Date(ends).toISOString().slice(0, 10)}`;
  const measures = { days_left: days };
  if (ends <= now) {
    return failing(`expired: ${text}`, measures);
  }
  if (Date.parse(certificate.validFrom) > now) {
    return failing(`not valid before ${certificate.validFrom}`, measures);
  }
  if (expect.trusted && distrust !== undefined) {
    return failing(
      `not trusted by this machine (${distrust}): ${text}`,
      measures,
    );
  }
  return okUnless(
    [days < expect.days_above && `only ${days} days are left`],
    `${text}, ${days} days left`,
    measures,
  );
}

function firstToEnd(pem: string): X509Certificate {
  const blocks =
    pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ??
    [];
  const [first] = blocks
    .map((block) => new X509Certificate(block))
    .toSorted((a, b) => Date.parse(a.validTo) - Date.parse(b.validTo));
  if (first === undefined) {
    throw new Error("the file contains no certificate");
  }
  return first;
}

function nameOf({ subject, subjectAltName }: X509Certificate): string {
  return (
    /CN=(.*)/.exec(subject)?.[1] ??
    subjectAltName?.replaceAll("DNS:", "") ??
    "the certificate"
  );
}
