import type { Environment } from "../../../core/environment.ts";
import {
  installationOfSupervisor,
  stackOf,
} from "../../../core/installation.ts";
import { withStackFlag } from "../../../core/stack-flag.ts";
import { supervisorContainer, supervisorPod } from "../hearth-command.ts";
import { operatorFile, type Home } from "../../../supervisor/home/home.ts";

/** Where the settings of this supervisor are changed. */
export type Place =
  | { readonly kind: "here"; readonly file: string; readonly home: string }
  | {
      readonly kind: Exclude<
        ReturnType<typeof installationOfSupervisor>,
        "embedded"
      >;
      readonly stack: string;
      /** The command that sends a test alert. */
      readonly test: string;
    };

export function placeOfConfig(home: Home, env: Environment): Place {
  const installation = installationOfSupervisor(env);
  return installation === "embedded"
    ? {
        kind: "here",
        file: operatorFile(home, "supervisor.local.yaml"),
        home: home.root,
      }
    : {
        kind: installation,
        stack: stackOf(env),
        test:
          installation === "two-hosts"
            ? `ssh HOST docker exec ${supervisorContainer(env)} hearth alerts test`
            : `kubectl exec ${supervisorPod(env)} -- hearth alerts test`,
      };
}

interface ApplySteps {
  /** The file that gets the settings. */
  readonly file: string;
  /** Where its secrets are set. */
  readonly secretsIn: string;
  /** Commands that apply the change, one per line. */
  readonly commands: string;
}

/** How a change of the settings and of these secrets takes effect. */
export function howToApply(
  place: Place,
  secrets: readonly string[],
): ApplySteps {
  const names = secrets.join(", ");
  switch (place.kind) {
    case "here":
      return {
        file: place.file,
        secretsIn: `Set ${names} in the shell that starts Hearth, or in ${place.home}/service.env where it starts at boot.`,
        commands: ["down", "up --detach", "alerts test"]
          .map((words) => `npx hearth ${words}`)
          .join("\n"),
      };
    case "two-hosts":
    case "stack-on-kubernetes":
      return {
        file: "config/supervisor.local.yaml of the deployment",
        secretsIn: `${names} is a secret of the stack; the command asks for it.`,
        commands: withStackFlag(
          [
            "npx pulumi config set hearth:supervisorConfig config/supervisor.local.yaml",
            ...secrets.map(
              (name) =>
                `npx pulumi config set --secret --path hearth:alertSecrets.${name}`,
            ),
            "npm run deploy -- up",
            place.test,
          ].join("\n"),
          place.stack,
        ),
      };
    case "kubernetes":
      return {
        file: "supervisorConfig of the chart's values",
        secretsIn: `Set ${names} in alertSecrets of the chart's values.`,
        commands: `helm upgrade hearth ./charts/hearth --values values.yaml\n${place.test}`,
      };
  }
}
