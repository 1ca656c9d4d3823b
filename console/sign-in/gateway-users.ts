import { verifiedMail, type Claims } from "../../core/tokens/claims.ts";
import { z } from "zod";
import { sentencesOf } from "../../core/failure.ts";
import { Refusal, type AdminApi } from "../../supervisor/gateway/admin-api.ts";
import { userPage, type ListedUser } from "../../supervisor/gateway/rows.ts";
import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";
import { syncMemberships } from "./gateway-memberships.ts";

import { ProviderDenial } from "./provider-errors.ts";

interface Person {
  readonly config: ProviderConfig;
  /** The provider's id of the account. */
  readonly subject: string;
  readonly claims: Claims;
  /** As the audit log names the person. */
  readonly name: string;
}

interface GatewayUsersOptions {
  /** With the master key. */
  readonly api: AdminApi;
  /** Called with a sentence when a user or its memberships could not be set. */
  readonly onProblem: (sentence: string) => void;
}

/**
 * A user of the gateway for each person who signs in through a provider with `users`: found by the account, else by the verified
 * e-mail address of a user without one, else created. Teams and organizations follow the claims.
 */
export class GatewayUsers {
  readonly #api: AdminApi;
  readonly #onProblem: GatewayUsersOptions["onProblem"];
  /** By account: sessions of one person take turns. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** By account: reported once until it changes. */
  readonly #problems = new Map<string, string>();

  constructor({ api, onProblem }: GatewayUsersOptions) {
    this.#api = api;
    this.#onProblem = onProblem;
  }

  /**
   * The id of the person's user; null without `users`, or if the gateway cannot tell now: admins sign in also while it does not
   * run. Throws a ProviderDenial for a blocked user.
   */
  async userIdOf(person: Person): Promise<string | null> {
    if (person.config.users === undefined) {
      return null;
    }
    const account = accountOf(person);
    try {
      return await this.#inTurn(account, () => this.#sync(person, account));
    } catch (error) {
      if (error instanceof ProviderDenial) {
        throw error;
      }
      this.#report(person, account, sentencesOf(error));
      return null;
    }
  }

  async #inTurn<Result>(
    account: string,
    act: () => Promise<Result>,
  ): Promise<Result> {
    const turn = (this.#turns.get(account) ?? Promise.resolve())
      .catch(() => {})
      .then(act);
    this.#turns.set(account, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(account) === turn) {
        this.#turns.delete(account);
      }
    }
  }

  #report(
    { name }: Person,
    account: string,
    problems: readonly string[],
  ): void {
    const sentence = problems.join(" ");
    if (sentence === "") {
      this.#problems.delete(account);
    } else if (this.#problems.get(account) !== sentence) {
      this.#problems.set(account, sentence);
      this.#onProblem(`${name} at the gateway: ${sentence}`);
    }
  }

  async #sync(person: Person, account: string): Promise<string> {
    const user =
      (await this.#find(account)) ??
      (await this.#adopt(person, account)) ??
      (await this.#create(person, account));
    const { user_id: userId } = user;
    if (user.blocked) {
      throw new ProviderDenial(
        `${person.name} is blocked. Ask an admin of this console for access.`,
      );
    }
    await this.#followMail(person, user);
    const problems = await syncMemberships(
      this.#api,
      userId,
      person.config,
      person.claims,
    );
    this.#report(person, account, problems);
    return userId;
  }

  async #find(account: string): Promise<ListedUser | undefined> {
    const users = await this.#list({ sso_user_id: account });
    // An older gateway does not know this filter.
    return users.find((user) => user.sso_user_id === account);
  }

  /** A user that an admin created for the person. One with a role over others is only linked by hand. */
  async #adopt(
    { claims }: Person,
    account: string,
  ): Promise<ListedUser | undefined> {
    const user = await this.#findByMail(verifiedMail(claims));
    if (
      user === undefined ||
      user.sso_user_id != null ||
      !user.user_role.startsWith("internal_user")
    ) {
      return undefined;
    }
    await this.#api.ask("POST", "/user/update", {
      user_id: user.user_id,
      sso_user_id: account,
    });
    return { ...user, sso_user_id: account };
  }

  async #create(
    { config, claims }: Person,
    account: string,
  ): Promise<ListedUser> {
    const { max_budget, budget_duration, models } = config.users ?? {};
    const mail = verifiedMail(claims);
    const isTaken = (await this.#findByMail(mail)) !== undefined;
    try {
      await this.#api.ask("POST", "/user/new", {
        sso_user_id: account,
        user_alias: fullNameIn(claims) ?? null,
        user_email: isTaken ? null : (mail ?? null),
        ...(max_budget === undefined ? {} : { max_budget }),
        ...(budget_duration === undefined ? {} : { budget_duration }),
        ...(models === undefined ? {} : { models }),
        auto_create_key: false,
      });
    } catch (error) {
      // The other host's console may have created it at the same time.
      if (!(error instanceof Refusal && error.param === "sso_user_id")) {
        throw error;
      }
    }
    const user = await this.#find(account);
    if (user === undefined) {
      throw new Refusal(
        "The gateway is older than this console: update it, then sign in again.",
        400,
        null,
      );
    }
    return user;
  }

  /** The user keeps the former address while the new one is another user's. */
  async #followMail({ claims }: Person, user: ListedUser): Promise<void> {
    const mail = verifiedMail(claims);
    if (mail === undefined || user.user_email?.toLowerCase() === mail) {
      return;
    }
    if ((await this.#findByMail(mail)) === undefined) {
      await this.#api.ask("POST", "/user/update", {
        user_id: user.user_id,
        user_email: mail,
      });
    }
  }

  async #findByMail(mail: string | undefined): Promise<ListedUser | undefined> {
    if (mail === undefined) {
      return undefined;
    }
    // The filter finds ids and names, too.
    const users = await this.#list({ named: mail });
    return users.find(({ user_email: of }) => of?.toLowerCase() === mail);
  }

  async #list(
    query: Readonly<Record<string, string>>,
  ): Promise<readonly ListedUser[]> {
    const parameters = new URLSearchParams({ page_size: "100", ...query });
    const path = `/user/list?${parameters.toString()}`;
    return userPage.parse(await this.#api.ask("GET", path)).users;
  }
}

function accountOf({ config, subject }: Person): string {
  return `${config.name}:${subject}`;
}

const MAX_NAME_LENGTH = 100;
const names = z.object({ name: z.string(), preferred_username: z.string() });

/** In one line. */
function fullNameIn(claims: Claims): string | undefined {
  const { name, preferred_username } = names.partial().catch({}).parse(claims);
  const shown = (name ?? preferred_username ?? "")
    .replace(/\p{C}/gu, "")
    .trim()
    .slice(0, MAX_NAME_LENGTH);
  return shown === "" ? undefined : shown.toWellFormed();
}
