import { askHttp } from "./http-get.ts";
import { probeTcp } from "./kinds/tcp.ts";

/** Whether this machine is offline: then failures tell nothing about other services. */
export interface References {
  /** Probes, unless it did in the last seconds. Always false without references. */
  readonly cutOff: () => Promise<boolean>;
}

const BELIEVED_FOR_MS = 5000;

/** A machine is offline if it reaches none of these addresses (http, https or tcp; any answer counts). */
export function openReferences(
  references: readonly string[],
  timeoutMs: number,
): References {
  let asked:
    { readonly at: number; readonly cutOff: Promise<boolean> } | undefined;
  return {
    cutOff: () => {
      if (references.length === 0) {
        return Promise.resolve(false);
      }
      if (
        asked === undefined ||
        performance.now() - asked.at > BELIEVED_FOR_MS
      ) {
        asked = {
          at: performance.now(),
          cutOff: noneAnswers(references, timeoutMs),
        };
      }
      return asked.cutOff;
    },
  };
}

async function noneAnswers(
  references: readonly string[],
  timeoutMs: number,
): Promise<boolean> {
  const signal = AbortSignal.timeout(timeoutMs);
  // A DNS lookup that hangs ignores the signal.
  const late = new Promise<never>((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason), {
      once: true,
    }),
  );
  return Promise.race([
    late,
    Promise.any(references.map((reference) => touch(reference, signal))),
  ]).then(
    () => false,
    () => true,
  );
}

async function touch(reference: string, signal: AbortSignal): Promise<void> {
  const { protocol, hostname, port } = new URL(reference);
  if (protocol === "tcp:") {
    await probeTcp({ host: hostname, port: Number(port) }, { signal });
  } else {
    await askHttp(reference, { signal, method: "HEAD" });
  }
}
