import { readVariable, type Environment } from "./environment.ts";
import { DEFAULT_STACK, withStackFlag } from "./stack-flag.ts";

/** How Hearth was installed; `stack-on-kubernetes`: the chart by `npm run deploy`; `other`: a program was started by hand. */
type Installation =
  "embedded" | "two-hosts" | "stack-on-kubernetes" | "kubernetes" | "other";

/** The name of the stack that deployed this program; the default one otherwise. */
export function stackOf(env: Environment): string {
  return readVariable("HEARTH_STACK", env) ?? DEFAULT_STACK;
}

/** A text whose commands change the stack that deployed this program. */
export function forOwnStack(text: string, env: Environment): string {
  return withStackFlag(text, stackOf(env));
}

/** The installation that started this gateway, by the variables that only it sets. */
export function installationOfGateway(env: Environment): Installation {
  if (readVariable("HEARTH_SUCCESSOR", env) !== undefined) {
    return "embedded";
  }
  if (env["KUBERNETES_SERVICE_HOST"] !== undefined) {
    return installationOfChart(env);
  }
  return readVariable("HEARTH_EXTRA_CONFIG", env) === undefined
    ? "other"
    : "two-hosts";
}

/** The installation of this supervisor and of the commands beside it. */
export function installationOfSupervisor(
  env: Environment,
): Exclude<Installation, "other"> {
  switch (env["HEARTH_RUNTIME"]) {
    case "docker":
      return "two-hosts";
    case "kubernetes":
      return installationOfChart(env);
    default:
      return "embedded";
  }
}

function installationOfChart(
  env: Environment,
): "stack-on-kubernetes" | "kubernetes" {
  return readVariable("HEARTH_STACK", env) === undefined
    ? "kubernetes"
    : "stack-on-kubernetes";
}

/** `howToSupply` for this gateway's installation and stack. */
export function howToSupplyGateway(variable: string, env: Environment): string {
  const advice = howToSupply(variable, installationOfGateway(env));
  return forOwnStack(advice, env);
}

/** The fix for a missing provider key or address: first the one that needs no restart. */
export function howToSupply(
  variable: string,
  installation: Installation,
): string {
  const set = howToSet(variable, installation);
  if (isProviderKey(variable)) {
    return `run \`hearth models key ${variable}\`, which takes effect at once, or ${set}`;
  }
  return variable.endsWith("_URL")
    ? `enter its address on the page Models of the console, which takes effect at once, or ${set}`
    : set;
}

/** Whether `hearth models key` can store it. */
export function isProviderKey(variable: string): boolean {
  return variable.endsWith("_KEY");
}

/** Variables for which a stack and the chart have a setting, by the same name. */
const RUNNER_SETTINGS: Readonly<Record<string, string>> = {
  LOCAL_RUNNER_A_URL: "localRunnerA",
  LOCAL_RUNNER_B_URL: "localRunnerB",
};

/** Where a variable of the gateway is set, and how it takes effect. */
export function howToSet(variable: string, installation: Installation): string {
  const isKey = isProviderKey(variable);
  const runner = RUNNER_SETTINGS[variable];
  switch (installation) {
    case "embedded":
      return `set ${variable} in the shell that starts Hearth (in \`service.env\` of its home where it starts at boot), then run \`hearth down\` and \`hearth up\``;
    case "two-hosts":
    case "stack-on-kubernetes":
      return `${howToSetInStack(variable)}, then run \`npm run deploy -- up\``;
    case "kubernetes":
      return `set ${runner === undefined ? `${variable} in \`${isKey ? "providerKeys" : "gateway.env"}\`` : `\`${runner}\``} of the chart's values, then run \`helm upgrade\``;
    case "other":
      return `set ${variable} in the environment of the gateway and restart it`;
  }
}

function howToSetInStack(variable: string): string {
  const runner = RUNNER_SETTINGS[variable];
  if (runner !== undefined) {
    return `run \`npx pulumi config set hearth:${runner} URL\``;
  }
  return isProviderKey(variable)
    ? `run \`npx pulumi config set --secret --path hearth:providerKeys.${variable}\``
    : `write the value into config/gateway.local.yaml in place of os.environ/${variable}`;
}
