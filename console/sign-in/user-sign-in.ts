import { hash } from "node:crypto";
import { z } from "zod";
import { HOUR_MS } from "../../core/duration.ts";
import { actAs } from "../../supervisor/history/author.ts";
import { newToken } from "../../supervisor/history/sessions.ts";
import type {
  UserSession,
  UserSessions,
} from "../../supervisor/history/user-sessions.ts";
import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";
import type { Role } from "../../supervisor/sign-in/roles.ts";
import type { CommandGrant } from "./command-providers.ts";
import type { GatewayUsers } from "./gateway-users.ts";
import { identify } from "./identity.ts";
import { PendingSignIns } from "./pending-sign-ins.ts";
import {
  ProviderDenial,
  ProviderUnavailable,
  titleOf,
} from "./provider-errors.ts";
import { Provider, type Grant } from "./provider.ts";

/** Who makes a request. */
export interface Caller {
  readonly role: Role;
  /** "operator", or a user as the audit log names them. */
  readonly name: string;
  /** The user of the gateway whose keys the caller manages; undefined for the operator, and where there is none. */
  readonly userId?: string;
}

/** A provider on the sign-in page. */
export interface ProviderView {
  readonly name: string;
  readonly title: string;
  /** Why it was unavailable a moment ago; null if it was not. */
  readonly trouble: string | null;
}

interface UserSignInOptions {
  readonly providers: readonly ProviderConfig[];
  readonly sessions: UserSessions;
  readonly gatewayUsers: GatewayUsers;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** While a provider is unavailable, its last confirmation of a session counts for this long. */
const UNCONFIRMED_MS = HOUR_MS;
const RETRY_MS = 30_000;

const storedGrant = z.object({
  subject: z.string(),
  sid: z.string().nullable(),
  claims: z.record(z.string(), z.unknown()),
  userInfoNames: z.array(z.string()).default([]),
  accessToken: z.string(),
  refreshToken: z.string().nullable(),
  idToken: z.string(),
});

/** Sign-in of users through the configured providers. */
export class UserSignIn {
  readonly #providers: ReadonlyMap<string, Provider>;
  readonly #sessions: UserSessions;
  readonly #pending: PendingSignIns;
  readonly #now: () => number;
  readonly #gatewayUsers: GatewayUsers;
  /** By token: requests of one browser share a confirmation, because some refresh tokens can be used only once. */
  readonly #confirming = new Map<string, Promise<Caller | undefined>>();

  constructor({ providers, sessions, gatewayUsers, now }: UserSignInOptions) {
    this.#providers = new Map(
      providers.map((config) => [config.name, new Provider(config, now)]),
    );
    this.#sessions = sessions;
    this.#gatewayUsers = gatewayUsers;
    this.#pending = new PendingSignIns(now);
    this.#now = now;
  }

  list(): readonly ProviderView[] {
    return [...this.#providers.values()].map((provider) => ({
      name: provider.config.name,
      title: titleOf(provider.config),
      trouble: this.#troubleOf(provider)?.sentence ?? null,
    }));
  }

  has(provider: string): boolean {
    return this.#providers.has(provider);
  }

  /** Begins a sign-in: where to send the browser, and the cookie that proves it is the same one later. */
  async begin(
    name: string,
    redirectUri: string,
    to: string,
  ): Promise<{
    readonly url: string;
    readonly state: string;
    readonly proof: string;
  }> {
    const provider = this.#providerOf(name);
    const pending = {
      provider: name,
      redirectUri,
      to,
      nonce: newToken(),
      verifier: newToken(),
    };
    const { state, proof } = this.#pending.add(pending);
    const url = await provider.authorizationUrl(pending, state);
    return { url, state, proof };
  }

  /** Ends a sign-in: a new session. Throws a ProviderDenial or a ProviderUnavailable. */
  async finish(
    name: string,
    query: URLSearchParams,
    proof: string | undefined,
  ): Promise<{
    readonly token: string;
    readonly seconds: number;
    readonly to: string;
  }> {
    const state = query.get("state") ?? "";
    const pending = this.#pending.use(state, proof);
    if (pending?.provider !== name) {
      throw new ProviderDenial(
        "This sign-in was already used, has expired or began in another browser. Sign in again.",
      );
    }
    const provider = this.#providerOf(name);
    const grant = await provider.grant(pending, state, query);
    const { token, session } = await this.#start(provider, grant);
    const seconds = Math.floor((session.endsAt - this.#now()) / 1000);
    return { token, seconds, to: pending.to };
  }

  /** A session for a user's commands. Throws a ProviderDenial or a ProviderUnavailable. */
  async exchange({ provider: name, idToken, accessToken }: CommandGrant) {
    const provider = this.#providerOf(name);
    const grant = await provider.grantOfCommands(idToken, accessToken);
    const { token, session } = await this.#start(provider, grant);
    const { endsAt } = session;
    return { token, endsAt, ...callerIn(session) };
  }

  async #start(
    provider: Provider,
    grant: Grant,
  ): Promise<{ readonly token: string; readonly session: UserSession }> {
    const { config } = provider;
    const { role, name } = identityOf(config, grant);
    const userId = await this.#userIdOf(provider, grant, name);
    const session = {
      provider: config.name,
      settings: settingsHash(config),
      subject: grant.subject,
      sid: grant.sid,
      name,
      role,
      userId,
      confirmedAt: this.#confirmedAt(provider, userId),
      endsAt: this.#now() + config.session,
    };
    const token = this.#sessions.start(session, JSON.stringify(grant));
    return { token, session };
  }

  /** The user of a session, confirmed by the provider where that is due; undefined if it has none. */
  async callerOf(token: string): Promise<Caller | undefined> {
    const session = this.#sessions.find(token);
    if (session === undefined) {
      return undefined;
    }
    const provider = this.#providers.get(session.provider);
    if (
      provider === undefined ||
      settingsHash(provider.config) !== session.settings
    ) {
      this.#sessions.end(token);
      return undefined;
    }
    const age = this.#ageOf(session);
    if (age < provider.config.confirm_every) {
      return callerIn(session);
    }
    if (this.#troubleOf(provider) !== undefined) {
      return age < UNCONFIRMED_MS ? callerIn(session) : undefined;
    }
    const confirmation =
      this.#confirming.get(token) ??
      this.#confirm(token, session, provider).finally(() =>
        this.#confirming.delete(token),
      );
    this.#confirming.set(token, confirmation);
    return confirmation;
  }

  /** Ends a session; where the browser signs out of the provider, too, if it has such a page. */
  async signOut(token: string, returnTo: string): Promise<string | undefined> {
    const session = this.#sessions.find(token);
    const grant = this.#grantOf(token);
    this.#sessions.end(token);
    return session === undefined || grant === undefined
      ? undefined
      : this.#providers
          .get(session.provider)
          ?.endSessionUrl(grant.idToken, returnTo);
  }

  /** Ends the sessions that a logout token of the back channel names. Throws a ProviderDenial or a ProviderUnavailable. */
  async endByProvider(name: string, logoutToken: string): Promise<void> {
    const { sid, subject } =
      await this.#providerOf(name).readLogoutToken(logoutToken);
    this.#sessions.endWhere(
      (session) =>
        session.provider === name &&
        (sid === null || session.sid === sid) &&
        (subject === null || session.subject === subject),
    );
  }

  endSession(token: string): void {
    this.#sessions.end(token);
  }

  endAll(): number {
    return this.#sessions.endAll();
  }

  async #confirm(
    token: string,
    session: UserSession,
    provider: Provider,
  ): Promise<Caller | undefined> {
    const grant = this.#grantOf(token);
    try {
      if (grant === undefined) {
        throw new ProviderDenial("The session is damaged. Sign in again.");
      }
      const confirmed = await provider.confirm(grant);
      const { role, name } = identityOf(provider.config, confirmed);
      const userId =
        (await this.#userIdOf(provider, confirmed, name)) ?? session.userId;
      const confirmedAt = this.#confirmedAt(provider, userId);
      this.#sessions.confirm(
        token,
        { role, name, userId, confirmedAt },
        JSON.stringify(confirmed),
      );
      // It may have ended while the provider was asked.
      const current = this.#sessions.find(token);
      return current === undefined ? undefined : callerIn(current);
    } catch (error) {
      if (error instanceof ProviderUnavailable) {
        return this.#ageOf(session) < UNCONFIRMED_MS
          ? callerIn(session)
          : undefined;
      }
      this.#sessions.end(token);
      if (error instanceof ProviderDenial) {
        return undefined;
      }
      throw error;
    }
  }

  /** The person's user at the gateway; null without `users`, or if the gateway cannot tell now. Throws a ProviderDenial for a blocked one. */
  #userIdOf(
    { config }: Provider,
    { subject, claims }: Grant,
    name: string,
  ): Promise<string | null> {
    const person = { config, subject, claims, name };
    return actAs(name, () => this.#gatewayUsers.userIdOf(person));
  }

  /** Now; a session without its user at the gateway is confirmed again soon. */
  #confirmedAt({ config }: Provider, userId: string | null): number {
    const isMissing = config.users !== undefined && userId === null;
    const early = Math.max(0, config.confirm_every - RETRY_MS);
    return this.#now() - (isMissing ? early : 0);
  }

  /** Since the last confirmation; a time in the future, after a change of the clock, counts as long ago as it is ahead. */
  #ageOf({ confirmedAt }: UserSession): number {
    return Math.abs(this.#now() - confirmedAt);
  }

  #troubleOf({ trouble }: Provider) {
    return trouble !== undefined && this.#now() - trouble.at < RETRY_MS
      ? trouble
      : undefined;
  }

  #grantOf(token: string): Grant | undefined {
    const secrets = this.#sessions.secretsOf(token);
    return secrets === undefined
      ? undefined
      : storedGrant.parse(JSON.parse(secrets));
  }

  #providerOf(name: string): Provider {
    const provider = this.#providers.get(name);
    if (provider === undefined) {
      throw new ProviderDenial(`Provider "${name}" is not configured.`);
    }
    return provider;
  }
}

/** Throws a ProviderDenial unless the user may sign in. */
function identityOf(config: ProviderConfig, { claims }: Grant) {
  const identity = identify(config, claims);
  if (identity.kind === "denied") {
    throw new ProviderDenial(identity.why);
  }
  return identity;
}

function callerIn({ role, name, userId }: UserSession): Caller {
  return { role, name, ...(userId === null ? {} : { userId }) };
}

/** A session does not outlive a change of these settings. The secret may be replaced. */
function settingsHash({
  client_secret: _,
  ...settings
}: ProviderConfig): string {
  return hash("sha256", JSON.stringify(settings), "base64url");
}
