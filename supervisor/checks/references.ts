import { askHttp } from "./http-get.ts";
import { probeTcp } from "./kinds/tcp.ts";

/** Whether this machine is offline: then failures say nothing about other services. */
interface References {
  /** Probes, with a cache of a few seconds. Always false without references. */
  readonly isOffline: () => Promise<boolean>;
}

const CACHE_MS = 5000;

/** A machine is offline if it reaches none of these addresses (http, https or tcp; any answer counts). */
export function openReferences(
  references: readonly string[],
  timeoutMs: number,
): References {
  let latest:
    { readonly at: number; readonly isOffline: Promise<boolean> } | undefined;
  return {
    isOffline: () => {
      if (references.length === 0) {
        return Promise.resolve(false);
      }
      if (latest === undefined || performance.now() - latest.at > CACHE_MS) {
        latest = {
          at: performance.now(),
          isOffline: noneAnswers(references, timeoutMs),
        };
      }
      return latest.isOffline;
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
