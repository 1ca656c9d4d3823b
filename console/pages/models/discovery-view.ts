import {
  entriesOf,
  USUAL_PLACES,
  type FoundRunner,
} from "../../../supervisor/gateway/find-runners.ts";
import type { DeploymentRow } from "../../../supervisor/gateway/deployments.ts";
import type { Look } from "../../../core/shapes.ts";
import { counted, readable } from "../../../core/words.ts";
import { hasCredentials, NEW_PATH } from "./model-form.ts";
import { withoutTrailingSlashes } from "../../../core/trailing-slashes.ts";

/** What templates/models-found.eta shows. */
export function viewFound(
  runners: readonly FoundRunner[],
  deployments: readonly DeploymentRow[],
  address: string | null,
) {
  const known = new Set(
    deployments.map(({ provider_params: { model, api_base: base = "" } }) =>
      keyOf(model, base),
    ),
  );
  const found = runners.map((runner) => ({
    name: readable(runner.name),
    address: readable(runner.address),
    models: entriesOf(runner).map(
      ({ model_name, provider_params: params, model_info: info }) => ({
        name: readable(model_name),
        note: known.has(keyOf(params.model, runner.address))
          ? "already configured"
          : hasCredentials(params.api_base)
            ? "has a password in its address: run `hearth models discover`"
            : null,
        add: {
          action: NEW_PATH,
          name: `Add ${readable(model_name)} of ${readable(runner.address)}`,
          // Without a password: see `note`.
          hidden: {
            model_name,
            model: params.model,
            api_base: hasCredentials(params.api_base)
              ? runner.address
              : params.api_base,
            mode: info.mode,
            local: "true",
          },
        },
      }),
    ),
  }));
  const models = found.reduce((sum, runner) => sum + runner.models.length, 0);
  return { ...headingOf(runners.length, models, address), runners: found };
}

function headingOf(
  runners: number,
  models: number,
  address: string | null,
): {
  readonly title: string;
  readonly look: Look;
  readonly advice: string | null;
} {
  if (runners === 0) {
    return {
      title: "No local runner found.",
      look: "none",
      advice:
        address === null
          ? `Tried ${USUAL_PLACES.join(", ")}, from the supervisor's machine. Start a runner, or enter its address.`
          : `${address} did not answer with a list of models: check that the runner is started and accepts connections from other machines.`,
    };
  }
  return {
    title: `${counted(models, "model")} of ${counted(runners, "runner")} found.`,
    look: models === 0 ? "none" : "ok",
    advice: null,
  };
}

/** The gateway appends /v1 to addresses without a path, and this machine has two names. */
function keyOf(model: string, base: string): string {
  const address = withoutTrailingSlashes(base)
    .replace(/\/v1$/, "")
    .replace("//localhost", "//127.0.0.1");
  return `${model} ${address}`;
}
