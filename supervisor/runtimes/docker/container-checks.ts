import { checkSchema, type Check } from "../../checks/config.ts";
import { serviceOf } from "../../checks/excuses.ts";

/** A restart does not help a slow store, and a stopped one was stopped on purpose. */
const STORES = ["postgres", "notes"];

/**
 * Adds a check for each container of the deployment on this host without one. If another check covers the service, that one
 * alerts and heals, and the check of the container depends on it.
 */
export function withContainerChecks(
  checks: readonly Check[],
  services: readonly string[],
): Check[] {
  const checked = new Set(
    checks.map((check) => (check.kind === "container" ? check.container : "")),
  );
  const names = new Set(checks.map(({ name }) => name));
  return [
    ...checks,
    ...services
      .filter((service) => !checked.has(service))
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
