import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { connect } from "node:tls";

export interface ShownCertificate {
  readonly certificate: X509Certificate;
  /** Why this machine does not trust it; undefined when it does. */
  readonly distrust: string | undefined;
}

/** The certificate that a server shows for its own name, whatever it is. Rejects when there is no TLS. */
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
      // Looked at whatever it is; whether it is trusted is judged apart.
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
        reject(new Error("it shows no certificate"));
      } else {
        resolve({ certificate, distrust });
      }
    });
  });
}
