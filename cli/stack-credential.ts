import type { Login, UserLogins } from "./user-login.ts";

export function bearer(token: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${token}` };
}

/** Who makes the requests. */
export interface Credential {
  headers(): Readonly<Record<string, string>>;
  /** After a 401: whether there is another credential now. */
  renew(): Promise<boolean>;
  /** What to do when it is denied. */
  readonly advice: (address: string) => string;
}

export function operatorCredential(
  headers: Readonly<Record<string, string>>,
): Credential {
  return {
    headers: () => headers,
    renew: async () => false,
    advice: (address) =>
      "authorization" in headers
        ? `the supervisor at ${address} denied the operator password: set HEARTH_OPERATOR_PASSWORD, or HEARTH_OPERATOR_PASSWORD_FILE to a file that contains it.`
        : `the supervisor at ${address} requires the operator password: set HEARTH_OPERATOR_PASSWORD, or HEARTH_OPERATOR_PASSWORD_FILE to a file that contains it (run \`hearth operator password\` on its host to print it), or sign in with your own account: \`hearth login\`.`,
  };
}

/** The session of a user, renewed with the provider's refresh token when it has ended. */
export class LoginCredential implements Credential {
  readonly #logins: UserLogins;
  #login: Login;

  constructor(logins: UserLogins, login: Login) {
    this.#logins = logins;
    this.#login = login;
  }

  headers(): Readonly<Record<string, string>> {
    return bearer(this.#login.session.token);
  }

  async renew(): Promise<boolean> {
    this.#login = await this.#logins.renew(this.#login);
    return true;
  }

  readonly advice = (address: string) =>
    `your login at ${address} has ended: run \`hearth login\` again.`;
}
