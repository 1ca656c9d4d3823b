import { createSign, generateKeyPairSync, randomBytes } from "node:crypto";
import { DAY_MS } from "../../core/duration.ts";

/**
 * A self-signed certificate of localhost and its key, both PEM, with these alternative names. Encoded here because Node can sign but not
 * issue certificates.
 */
export function makeSelfSigned(
  validTo: Date,
  names: readonly string[] = [],
): {
  readonly cert: string;
  readonly key: string;
} {
  const { privateKey, publicKey } = generateKeyPairSync("ec", {
    namedCurve: "prime256v1",
  });
  // ecdsa-with-SHA256, and commonName.
  const algorithm = sequence(oid("2a8648ce3d040302"));
  const name = sequence(
    tagged(
      0x31,
      sequence(oid("550403"), tagged(0x0c, Buffer.from("localhost"))),
    ),
  );
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    name,
    sequence(time(new Date(Date.now() - DAY_MS)), time(validTo)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    ...(names.length === 0 ? [] : [alternativeNames(names)]),
  );
  const signature = createSign("sha256").update(body).sign(privateKey);
  const certificate = sequence(
    body,
    algorithm,
    tagged(0x03, Buffer.concat([Buffer.from([0]), signature])),
  );
  const lines = certificate.toString("base64").replace(/.{64}/g, "$&\n");
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** The extensions of a certificate with subjectAltName as the only one. */
function alternativeNames(names: readonly string[]): Buffer {
  const list = sequence(
    ...names.map((name) => tagged(0x82, Buffer.from(name))),
  );
  return tagged(0xa3, sequence(sequence(oid("551d11"), tagged(0x04, list))));
}

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 128
      ? [length]
      : length < 256
        ? [0x81, length]
        : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function oid(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, "hex"));
}

/** GeneralizedTime: YYYYMMDDHHMMSSZ. */
function time(at: Date): Buffer {
  const text = `${at.toISOString().slice(0, 19).replaceAll(/[-:T]/g, "")}Z`;
  return tagged(0x18, Buffer.from(text));
}
