import type { Gateway } from "../gateway.ts";

/** The alias of the echo, which repeats its input. */
const ECHO = "hearth-echo";

/** An alias for examples. Aliases are shown to keys that may use them only, except for the echo. */
export function exampleModel({ catalog }: Pick<Gateway, "catalog">): string {
  return catalog.deployments.some(({ alias }) => alias === ECHO)
    ? ECHO
    : "MODEL";
}
