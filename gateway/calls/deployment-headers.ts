import type { Deployment } from "../config/types.ts";

/** The headers that name a deployment. */
export function deploymentHeaders(
  deployment: Deployment,
): Record<string, string> {
  const { id, provider } = namesOf(deployment);
  return { "x-hearth-model-id": id, "x-hearth-provider": provider };
}

interface DeploymentNames {
  readonly id: string;
  readonly provider: string;
}

const names = new WeakMap<Deployment, DeploymentNames>();

/** As header values; computed once for each deployment. */
function namesOf(deployment: Deployment): DeploymentNames {
  const known = names.get(deployment);
  if (known !== undefined) {
    return known;
  }
  const read = {
    id: headerText(deployment.id),
    provider: headerText(deployment.providerName),
  };
  names.set(deployment, read);
  return read;
}

/** Text that needs no encoding in a header: printable ASCII without `%`. */
const PLAIN = /^[ -$&-~]*$/;

/**
 * Any text as a header value: percent-encoded as UTF-8 if it is not plain printable ASCII. `decodeURIComponent` restores the
 * text in both cases.
 */
export function headerText(text: string): string {
  return PLAIN.test(text) ? text : encodeURI(text.toWellFormed());
}
