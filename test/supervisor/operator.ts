import {
  operatorHeaders,
  type Credentials,
} from "../../supervisor/credentials.ts";

/** What lets the operator of a test in. */
export const testCredentials: Credentials = {
  operatorPassword: "the-operator-password",
  cliToken: "the-token-of-the-commands",
  metricsToken: "the-token-of-prometheus",
};

export const asOperator: Readonly<Record<string, string>> = operatorHeaders(
  testCredentials.operatorPassword,
);
