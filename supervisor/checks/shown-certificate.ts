import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { connect } from "node:tls";

interface ShownCertificate {
  readonly certificate: X509Certificate;
  /** Why this machine does not trust it; undefined if it does. */
  readonly distrust: string | undefined;
}

/** The certificate of a server, trusted or not. Rejects without TLS. */
export function readShownCertificate(
  url: URL,
  signal: AbortSignal,
): Promise<ShownCertificate> {
  return new Promise((resolve, reject) => {
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const socket = connect({
      host,
      port: Number(url.port || 443),
      ...(isIP(host) === 0 ? { servername: host } : {}),
      // Accepted here; trust is judged separately.
      rejectUnauthorized: false,
    });
    const giveUp = () => socket.destroy(new Error("no answer in time"));
    signal.addEventListener("abort", giveUp, { once: true });
    socket.once("close", () => signal.removeEventListener("abort", giveUp));
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      const certificate = socket.getPeerX509Certificate();
      const distrust = socket.authorized
        ? undefined
        : String(socket.authorizationError);
      socket.destroy();
      if (certificate === undefined) {
        reject(new Error("no certificate received"));
      } else {
        resolve({ certificate, distrust });
      }
    });
  });
}
