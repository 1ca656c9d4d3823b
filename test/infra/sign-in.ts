import { expect } from "vitest";

/** A provider of accounts that is always away: nothing listens there. */
const PROVIDER_AWAY = "https://127.0.0.1:9";

/** As `hearth:alertSecrets`. */
export const SIGN_IN_SECRETS = {
  HOME_CLIENT_SECRET: "client-0123456789abcdef",
} as const;

/** Of a supervisor's configuration: people may sign in with an account of the provider. */
export const SIGN_IN = {
  sign_in: [
    {
      name: "home",
      title: "Home",
      issuer: PROVIDER_AWAY,
      client_id: "hearth",
      client_secret: "${HOME_CLIENT_SECRET}",
      roles: { map: { admins: "admin" } },
    },
  ],
} as const;

/** A line of a gateway's configuration: its callers may send a token of the provider. */
export const TOKENS = `jwt: [{ name: home, issuer: "${PROVIDER_AWAY}", audience: hearth }]\n`;

/** Expects that a console offers the sign-in, and that a gateway asks the provider for the keys of its tokens. */
export async function expectSignIn(
  openPage: (path: string) => Promise<string>,
  gatewayUrl: string,
): Promise<void> {
  expect(await openPage("/")).toContain("/sign-in/with/home");
  expect(await openPage("/sign-in/with/home")).toContain("Home is unavailable");
  const part = (value: object) =>
    Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = `${part({ alg: "RS256", kid: "1" })}.${part({ iss: PROVIDER_AWAY })}.c2lnbmVk`;
  const answer = await fetch(`${gatewayUrl}/v1/models`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(answer.status).toBe(503);
  expect(await answer.text()).toContain(
    `The keys of ${PROVIDER_AWAY} are unavailable`,
  );
}
