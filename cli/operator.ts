import { givenPassword } from "../supervisor/credentials.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import {
  changeSecrets,
  createSecret,
  readSecretsFile,
} from "../supervisor/home/secrets.ts";
import { Failure } from "../core/failure.ts";
import { forOwnStack } from "../core/installation.ts";
import { printAnswer } from "./terminal.ts";
import { defineVerb, jsonArg, type Verb } from "./verb.ts";

const replaceFirst = {
  type: "boolean",
  description: "Replace it first",
} as const;

const password = defineVerb({
  name: "operator password",
  description:
    "Show the operator password; --new replaces it and signs out all browsers.",
  example: "hearth operator password --new",
  args: { new: replaceFirst, ...jsonArg },
  run: async ({ new: replace, json }) => {
    const given = givenPassword(process.env);
    if (given !== undefined && replace === true) {
      throw new Failure(
        forOwnStack(
          "the operator password is set by HEARTH_OPERATOR_PASSWORD or HEARTH_OPERATOR_PASSWORD_FILE: replace it there and restart the supervisor (on two hosts: `npx pulumi config set --secret hearth:operatorPassword …`, then `npm run deploy -- up`).",
          process.env,
        ),
      );
    }
    // Sessions and links are bound to the password, so a new one ends them.
    const operatorPassword =
      given ?? secretOf(locateHome(), "operatorPassword", replace);
    printAnswer(json, { operatorPassword }, operatorPassword);
    return 0;
  },
});

const metricsToken = defineVerb({
  name: "operator metrics-token",
  description: "Show the token for /metrics and /readyz; --new replaces it.",
  example: "hearth operator metrics-token",
  args: { new: replaceFirst, ...jsonArg },
  run: async ({ new: replace, json }) => {
    const token = secretOf(locateHome(), "metricsToken", replace);
    printAnswer(json, { metricsToken: token }, token);
    return 0;
  },
});

export const operator: Verb = {
  name: "operator",
  description: "Show or replace the credentials of the pages and /metrics.",
  example: "hearth operator password",
  verbs: {
    password: async () => password,
    "metrics-token": async () => metricsToken,
  },
};

/** A running supervisor applies the change with its next request. */
function secretOf(
  home: Home,
  name: "operatorPassword" | "metricsToken",
  replace: boolean | undefined,
): string {
  const known = readSecretsFile(home)?.[name];
  if (known === undefined) {
    throw new Failure(
      `not yet in ${home.secrets}; it is created by the next start of Hearth. Run \`hearth up\`.`,
    );
  }
  if (replace !== true) {
    return known;
  }
  const next = createSecret();
  changeSecrets(home, { [name]: next });
  return next;
}
