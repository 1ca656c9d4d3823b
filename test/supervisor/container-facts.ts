import type { ContainerFacts } from "../../supervisor/runtimes/runtime.ts";

/** A container of the gateway that runs. */
export const CONTAINER_FACTS: ContainerFacts = {
  id: "abc",
  image: "hearth-gateway",
  status: "running",
  health: "healthy",
  healthOutput: "",
  startedAt: 0,
  exitCode: null,
  oomKilled: false,
};
