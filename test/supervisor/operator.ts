import {
  operatorHeaders,
  type Credentials,
} from "../../supervisor/credentials.ts";

/** The credentials that tests use. */
export const testCredentials: Credentials = {
  operatorPassword: "the-operator-password",
  cliToken: "the-token-of-the-commands",
  metricsToken: "the-token-of-prometheus",
};

export const asOperator: Readonly<Record<string, string>> = operatorHeaders(
  testCredentials.operatorPassword,
);
