import { admin, ask, startNotes, testIni } from "./start-notes.ts";

/** A server to test against the contract. */
export interface ServerUnderTest {
  readonly name: string;
  readonly embedded: boolean;
  readonly start: () => Promise<RunningServer>;
}

export interface RunningServer {
  readonly url: string;
  readonly admin: { readonly name: string; readonly password: string };
  readonly stop: () => Promise<void>;
}

const embedded: ServerUnderTest = {
  name: "embedded store",
  embedded: true,
  start: async () => {
    const notes = await startNotes(testIni({ trusted_proxies: "127.0.0.1" }));
    return { url: notes.url, admin, stop: notes.stop };
  },
};

/** The embedded store, and an empty CouchDB if COUCHDB_URL (http://admin:password@host:port) is set. */
export function serversUnderTest(): ServerUnderTest[] {
  const couchdb = process.env.COUCHDB_URL;
  return couchdb === undefined ? [embedded] : [embedded, realCouchdb(couchdb)];
}

function realCouchdb(text: string): ServerUnderTest {
  const { username, password, origin } = new URL(text);
  const operator = {
    name: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
  return {
    name: "CouchDB",
    embedded: false,
    start: async () => {
      await removeLeftovers(origin, operator);
      return { url: origin, admin: operator, stop: async () => undefined };
    },
  };
}

async function removeLeftovers(
  url: string,
  user: { readonly name: string; readonly password: string },
): Promise<void> {
  const names = (await (
    await ask(`${url}/_all_dbs`, { user })
  ).json()) as string[];
  const ours = names.filter((name) => /^(?:probe|vault)\b/.test(name));
  for (const name of ours) {
    await ask(`${url}/${encodeURIComponent(name)}`, { method: "DELETE", user });
  }
  const users = (await (
    await ask(`${url}/_users/_all_docs`, { user })
  ).json()) as { rows: { id: string; value: { rev: string } }[] };
  for (const { id, value } of users.rows) {
    if (!/^org\.couchdb\.user:(?:probe|vault)-/.test(id)) {
      continue;
    }
    await ask(`${url}/_users/${encodeURIComponent(id)}?rev=${value.rev}`, {
      method: "DELETE",
      user,
    });
  }
}
