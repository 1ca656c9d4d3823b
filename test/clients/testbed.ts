import { throwAwayDatabase } from "../servers/database.ts";
import { startTestGateway, type TestGateway } from "../servers/gateway.ts";
import { startMockProviders, type MockProviders } from "./provider-formats.ts";

/** A gateway with a separate database and aliases on every provider format. */
export interface ClientTestbed extends TestGateway {
  readonly providers: MockProviders;
}

export async function startClientTestbed(): Promise<ClientTestbed> {
  const [database, providers] = await Promise.all([
    throwAwayDatabase(),
    startMockProviders(),
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

/** Counts the requests that a client actually sends. */
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

/** The error of a call that must fail. */
export async function caught(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("the call did not fail");
}

/** All items of a stream or a paged list. */
export async function collected<T>(all: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of all) {
    found.push(one);
  }
  return found;
}
