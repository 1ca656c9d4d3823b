import { throwAwayDatabase } from "../servers/database.ts";
import { startTestGateway, type TestGateway } from "../servers/gateway.ts";
import {
  startPlayedProviders,
  type PlayedProviders,
} from "./provider-formats.ts";

/** A gateway over a database of its own, with aliases on every provider format. */
export interface ClientTestbed extends TestGateway {
  readonly providers: PlayedProviders;
}

export async function startClientTestbed(): Promise<ClientTestbed> {
  const [database, providers] = await Promise.all([
    throwAwayDatabase(),
    startPlayedProviders(),
  ]);
  const gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: providers.url,
    yaml: providers.yaml,
  });
  return {
    ...gateway,
    providers,
    async stop() {
      await gateway.stop();
      await providers.close();
      await database.drop();
    },
  };
}

/** Counts the requests that a client really sends. */
export function countingFetch(): {
  readonly fetch: typeof fetch;
  count(): number;
} {
  let sent = 0;
  return {
    fetch: (input, init) => {
      sent++;
      return fetch(input, init);
    },
    count: () => sent,
  };
}

/** A PNG of one pixel. */
export const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** The error of a call that must be refused. */
export async function caught(asked: PromiseLike<unknown>): Promise<unknown> {
  try {
    await asked;
  } catch (error) {
    return error;
  }
  throw new Error("it was not refused");
}

/** Everything that a stream or a paged list brings. */
export async function collected<T>(all: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of all) {
    found.push(one);
  }
  return found;
}
