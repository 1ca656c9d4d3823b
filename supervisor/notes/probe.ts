import { request as requestPlain, type IncomingMessage } from "node:http";
import { request as requestTls } from "node:https";
import { connect } from "node:tls";
import { codeOf, textOf } from "../failure.ts";

export type ProbeAsk = {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it comes. */
  readonly body?: Iterable<Buffer>;
  readonly signal: AbortSignal;
};

export type ProbeAnswer = {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
};

/** One request as a device makes it. A certificate that cannot be trusted is let pass: it is reported apart. */
export async function probe(url: string, ask: ProbeAsk): Promise<ProbeAnswer> {
  const response = await begin(url, ask);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: Buffer.concat(chunks).toString("utf8"),
  };
}

/** The time until an awaited piece of the answer's body comes, in milliseconds; the request is then given up. */
export async function timeToPiece(
  url: string,
  ask: ProbeAsk,
  awaited: (chunk: Buffer, ms: number) => boolean,
): Promise<{ readonly status: number; readonly ms: number | undefined }> {
  const begun = performance.now();
  const response = await begin(url, ask);
  const status = response.statusCode ?? 0;
  try {
    for await (const chunk of response) {
      const ms = performance.now() - begun;
      if (awaited(chunk as Buffer, ms)) return { status, ms };
    }
    return { status, ms: undefined };
  } finally {
    response.destroy();
  }
}

function begin(url: string, ask: ProbeAsk): Promise<IncomingMessage> {
  const send = url.startsWith("https:") ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const call = send(
      `${url}${ask.path}`,
      {
        method: ask.method,
        agent: false,
        headers: { connection: "close", ...ask.headers },
        rejectUnauthorized: false,
        signal: ask.signal,
      },
      resolve,
    );
    call.once("error", reject);
    if (ask.body === undefined) {
      call.end();
      return;
    }
    const pieces = ask.body[Symbol.iterator]();
    const more = (): void => {
      for (let piece = pieces.next(); !piece.done; piece = pieces.next()) {
        if (!call.write(piece.value)) {
          call.once("drain", more);
          return;
        }
      }
      call.end();
    };
    more();
  });
}

export type Certificate = {
  /** Devices trust it without being told to. */
  readonly trusted: boolean;
  /** Why not. */
  readonly reason: string | undefined;
  /** Milliseconds since 1970. */
  readonly validTo: number;
  readonly issuer: string;
};

/** The certificate that a server shows for its own name. Rejects when there is no TLS. */
export function readCertificate(
  url: string,
  signal: AbortSignal,
): Promise<Certificate> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: port === "" ? 443 : Number(port),
      ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
      rejectUnauthorized: false,
    });
    const giveUp = () => socket.destroy(new Error("no answer in time"));
    signal.addEventListener("abort", giveUp, { once: true });
    socket.once("error", reject);
    socket.once("close", () => signal.removeEventListener("abort", giveUp));
    socket.once("secureConnect", () => {
      const { valid_to, issuer } = socket.getPeerCertificate();
      const error: unknown = socket.authorizationError;
      resolve({
        trusted: socket.authorized,
        reason:
          error === undefined ? undefined : (codeOf(error) ?? textOf(error)),
        validTo: Date.parse(valid_to),
        issuer: String(issuer?.O ?? issuer?.CN ?? "unknown"),
      });
      socket.destroy();
    });
  });
}
