import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { parseJson } from "../core/json.ts";
import { writeDurably } from "../core/durable-file.ts";
import { codeOf, Failure, requestReason } from "../core/failure.ts";
import { waitForLock, type FileLock } from "../core/file-lock.ts";
import { askHttp } from "../supervisor/checks/http-get.ts";
import type { Home } from "../supervisor/home/home.ts";
import { CommandClient, type ProviderTokens } from "./provider-tokens.ts";

/** What the console answers (CommandSessionView). */
const session = z.object({
  token: z.string(),
  name: z.string(),
  role: z.string(),
  endsAt: z.number(),
});
const stored = z.object({
  /** Of the console, without a slash at the end. */
  address: z.string(),
  /** Where key holders reach the gateway. */
  gateway: z.string(),
  provider: z.object({
    name: z.string(),
    title: z.string(),
    issuer: z.string(),
    clientId: z.string(),
    scopes: z.array(z.string()),
  }),
  tokens: z.object({
    idToken: z.string(),
    accessToken: z.string(),
    refreshToken: z.string().nullable(),
  }),
  session,
});
const file = z.object({ logins: z.array(stored) });

/** A user who signed in at a console with `hearth login`. Secret, except address, provider and names. */
export type Login = Readonly<z.output<typeof stored>>;

const TIMEOUT_MS = 15_000;
const LOCK_WAIT_MS = 30_000;

/** The logins of this machine's user, in a file that only that user can read; the latest first. */
export class UserLogins {
  readonly #path: string;

  constructor(home: Pick<Home, "root">) {
    this.#path = join(home.root, "logins.json");
  }

  /** The login at a console; without an address the latest. Throws a Failure if the file is damaged. */
  find(address?: string): Login | undefined {
    const all = this.#read();
    return address === undefined
      ? all[0]
      : all.find((login) => login.address === address);
  }

  async store(login: Login): Promise<void> {
    await this.#change((all) => [login, ...without(all, login.address)]);
  }

  async remove(address: string): Promise<void> {
    await this.#change((all) => without(all, address));
  }

  /**
   * Renews the session that no longer works, with the provider's refresh token. Two commands at once do so once: some refresh
   * tokens can be used only once.
   */
  async renew(expired: Login): Promise<Login> {
    const lock = await this.#lock();
    try {
      const current = this.find(expired.address);
      if (current === undefined) {
        throw new Failure("this session has ended: run `hearth login`.");
      }
      if (current.session.token !== expired.session.token) {
        return current;
      }
      const client = await CommandClient.open(current.provider);
      const tokens = await client.refresh(current.tokens);
      // Before they are used: the former refresh token may already be void.
      this.#write([
        { ...current, tokens },
        ...without(this.#read(), current.address),
      ]);
      const { address, provider } = current;
      const session = await openSession(address, provider.name, tokens);
      const renewed = { ...current, tokens, session };
      this.#write([renewed, ...without(this.#read(), address)]);
      return renewed;
    } finally {
      lock.release();
    }
  }

  async #change(next: (all: readonly Login[]) => readonly Login[]) {
    const lock = await this.#lock();
    try {
      this.#write(next(this.#read()));
    } finally {
      lock.release();
    }
  }

  async #lock(): Promise<FileLock> {
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    const lock = await waitForLock(`${this.#path}.lock`, LOCK_WAIT_MS);
    if (lock === undefined) {
      throw new Failure(
        `another command is renewing the login in ${this.#path}: try again in a moment.`,
      );
    }
    return lock;
  }

  #read(): readonly Login[] {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch (error) {
      if (codeOf(error) === "ENOENT") {
        return [];
      }
      throw error;
    }
    try {
      return file.parse(JSON.parse(text)).logins;
    } catch (error) {
      throw new Failure(
        `${this.#path} is damaged: remove it, then run \`hearth login\`.`,
        error,
      );
    }
  }

  #write(logins: readonly Login[]): void {
    writeDurably(this.#path, `${JSON.stringify({ logins }, null, 2)}\n`);
  }
}

function without(all: readonly Login[], address: string): readonly Login[] {
  return all.filter((login) => login.address !== address);
}

/** Exchanges a provider's tokens for a session of the console. Throws a Failure with the console's sentence. */
export async function openSession(
  address: string,
  provider: string,
  { idToken, accessToken }: ProviderTokens,
): Promise<Login["session"]> {
  const { status, body } = await askHttp(`${address}/api/sign-in`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ provider, idToken, accessToken }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: unknown) => {
    throw new Failure(
      `the console at ${address} does not respond (${requestReason(error)}): check that it is running.`,
    );
  });
  const answer = parseJson(body);
  const opened = session.safeParse(answer);
  if (status === 200 && opened.success) {
    return opened.data;
  }
  throw new Failure(
    rejection.safeParse(answer).data?.error.message ??
      `the console at ${address} responded with status ${status}: run \`hearth login\` again.`,
  );
}

const rejection = z.object({ error: z.object({ message: z.string() }) });
