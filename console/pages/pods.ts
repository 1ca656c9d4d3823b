import { describePod } from "../../supervisor/runtimes/kubernetes/pod-words.ts";
import type { ServiceStatus } from "../../supervisor/status.ts";
import { stateOfService } from "./states.ts";

/** The pods among the services, as rows of a table. */
export function viewPods(services: readonly ServiceStatus[], at: number) {
  return services.flatMap((service) =>
    service.pod === undefined
      ? []
      : [
          {
            name: service.name,
            href: `/services/${encodeURIComponent(service.name)}`,
            ...stateOfService(service, at),
            reason: service.reason ?? "",
            restarts: service.restarts,
            ...describePod(service.pod, at),
          },
        ],
  );
}
