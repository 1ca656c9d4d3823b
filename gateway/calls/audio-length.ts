import { Worker } from "node:worker_threads";

/** To measure; the reply is its seconds, or null. */
export interface AudioToMeasure {
  readonly bytes: Uint8Array;
  readonly name: string;
  readonly contentType: string;
}

/** The worker's first message, once it has loaded its library. */
export const READY = "ready";

/** A file can be made so that a parser never ends. */
const MAX_MS = 5_000;
const MAX_HEAP_MB = 128;

/** Measures files in turn, off the main thread: the first one starts a worker, which stays for the next ones. */
let worker: Promise<Worker> | null = null;
let queue: Promise<unknown> = Promise.resolve();

/** Seconds of an audio or video file; null where its format or its header does not tell. */
export function secondsOf(audio: AudioToMeasure): Promise<number | null> {
  const measured = queue.then(() => measure(audio)).catch(() => null);
  queue = measured;
  return measured;
}

/** Throws when the worker fails or takes too long, and ends it: the next file gets a new one. */
async function measure(audio: AudioToMeasure): Promise<number | null> {
  const current = await (worker ??= startWorker());
  const timeout = AbortSignal.timeout(MAX_MS);
  current.ref();
  try {
    const reply = nextMessage(current, timeout);
    current.postMessage(audio);
    return (await reply) as number | null;
  } catch (error) {
    worker = null;
    await current.terminate();
    throw error;
  } finally {
    current.unref();
  }
}

async function startWorker(): Promise<Worker> {
  const started = new Worker(
    new URL("./audio-length-worker.ts", import.meta.url),
    { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } },
  );
  // Without a listener an error of the idle worker would end the process.
  started.on("error", () => undefined);
  try {
    await nextMessage(started, null);
    started.unref();
    return started;
  } catch (error) {
    worker = null;
    throw error;
  }
}

function nextMessage(
  from: Worker,
  timeout: AbortSignal | null,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown) => end(() => resolve(message));
    const onError = (error: unknown) => end(() => reject(error));
    const onExit = () => end(() => reject(new Error("the worker has ended")));
    const onTimeout = () => end(() => reject(new Error("too slow")));
    const end = (settle: () => void) => {
      from.off("message", onMessage).off("error", onError).off("exit", onExit);
      timeout?.removeEventListener("abort", onTimeout);
      settle();
    };
    from.on("message", onMessage).on("error", onError).on("exit", onExit);
    timeout?.addEventListener("abort", onTimeout);
  });
}
