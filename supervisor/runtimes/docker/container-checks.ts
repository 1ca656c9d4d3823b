import { checkSchema, type Check } from "../../checks/config.ts";
import { serviceOf } from "../../checks/excuses.ts";

/** A store that is slow is not helped by losing its memory, and one that was stopped was stopped by somebody. */
const STORES = ["postgres", "notes"];

/**
 * The checks with one for each container that the deployment put on this host and that none of them looks at. Where another
 * check speaks for the service already, it goes first: it alerts and heals, and the container's own check waits for it.
 */
export function withContainerChecks(
  checks: readonly Check[],
  services: readonly string[],
): Check[] {
  const lookedAt = new Set(
    checks.map((check) => (check.kind === "container" ? check.container : "")),
  );
  const names = new Set(checks.map(({ name }) => name));
  return [
    ...checks,
    ...services
      .filter((service) => !lookedAt.has(service))
      .filter((service) => !names.has(nameOf(service)))
      .map((service): Check => {
        const others = checks.filter((check) => serviceOf(check) === service);
        return checkSchema.parse({
          kind: "container",
          name: nameOf(service),
          container: service,
          depends_on: others.map(({ name }) => name),
          ...(others.length > 0 || STORES.includes(service)
            ? {}
            : { heal: { restart: service } }),
        });
      }),
  ];
}

function nameOf(service: string): string {
  return `${service}-container`;
}
