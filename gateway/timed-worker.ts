import { parentPort, Worker } from "node:worker_threads";

interface TimedWorkerOptions {
  /** Longest time for one task. */
  readonly maxMs: number;
  /** Longest time that a task waits for those before it, by which it is rejected when its turn comes. */
  readonly maxWaitMs: number;
  readonly maxHeapMb: number;
}

/** A task took longer than it may. */
export class TooSlow extends Error {}

/** A task waited too long for the ones before it, and was not started. */
export class TooBusy extends Error {}

/** The first message of a thread, once it has loaded its libraries. */
const READY = "ready";

/**
 * Runs tasks in turn, off the main thread, by a script that calls {@link answerTasks}. The first task starts the thread, which
 * stays for the next ones; after a task that fails or takes too long the next one gets a new thread.
 */
export class TimedWorker<Task, Result> {
  readonly #script: URL;
  readonly #options: TimedWorkerOptions;
  #worker: Promise<Worker> | null = null;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(script: URL, options: TimedWorkerOptions) {
    this.#script = script;
    this.#options = options;
  }

  /** Rejects with {@link TooSlow}, {@link TooBusy}, or the error with which the thread ended. */
  run(task: Task): Promise<Result> {
    const since = performance.now();
    const result = this.#queue.then(() => {
      if (performance.now() - since > this.#options.maxWaitMs) {
        throw new TooBusy();
      }
      return this.#run(task);
    });
    this.#queue = result.catch(() => undefined);
    return result;
  }

  async #run(task: Task): Promise<Result> {
    const worker = await (this.#worker ??= this.#start());
    worker.ref();
    try {
      const reply = nextMessage(worker, this.#options.maxMs);
      worker.postMessage(task);
      return (await reply) as Result;
    } catch (error) {
      this.#worker = null;
      await worker.terminate();
      throw error;
    } finally {
      worker.unref();
    }
  }

  async #start(): Promise<Worker> {
    const started = new Worker(this.#script, {
      resourceLimits: { maxOldGenerationSizeMb: this.#options.maxHeapMb },
    });
    // Without a listener an error of the idle worker would end the process.
    started.on("error", () => undefined);
    try {
      await nextMessage(started, null);
      started.unref();
      return started;
    } catch (error) {
      this.#worker = null;
      throw error;
    }
  }
}

function nextMessage(from: Worker, maxMs: number | null): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown) => end(() => resolve(message));
    const onError = (error: unknown) => end(() => reject(error));
    const onExit = () => end(() => reject(new Error("the worker has ended")));
    const timer =
      maxMs === null
        ? undefined
        : setTimeout(() => end(() => reject(new TooSlow())), maxMs);
    const end = (settle: () => void) => {
      clearTimeout(timer);
      from.off("message", onMessage).off("error", onError).off("exit", onExit);
      settle();
    };
    from.on("message", onMessage).on("error", onError).on("exit", onExit);
  });
}

/** Answers the tasks of a {@link TimedWorker}, in its script. A failure ends the thread, and fails the task. */
export function answerTasks<Task, Result>(
  answer: (task: Task) => Promise<Result>,
): void {
  parentPort?.on("message", (task: Task) => {
    void answer(task).then((result) => parentPort?.postMessage(result));
  });
  parentPort?.postMessage(READY);
}
