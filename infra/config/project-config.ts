import { defaultOf, metaOf } from "./config-lookup.ts";
import { configSchema } from "./config-schema.ts";

/** A setting as Pulumi.yaml declares it. */
interface Declaration {
  readonly type: "string" | "integer";
  readonly default: string | number;
  readonly description: string;
}

/**
 * The `config` of Pulumi.yaml: single values with a default. The engine requires every declared setting without one, even if optional,
 * with a less helpful message than the program's. It rejects groups stored as JSON text, which the program reads.
 */
export function projectConfig(): Readonly<Record<string, unknown>> {
  const declared = Object.entries(configSchema.shape).flatMap(
    ([name, setting]): readonly (readonly [string, Declaration])[] => {
      const value = defaultOf(setting);
      const { description = "" } = metaOf(setting);
      if (typeof value === "string") {
        return [[name, { type: "string", default: value, description }]];
      }
      if (typeof value === "number") {
        return [[name, { type: "integer", default: value, description }]];
      }
      return [];
    },
  );
  return {
    // A resource without one of the hosts' providers would be created on the operator's machine.
    "pulumi:disable-default-providers": { value: ["*"] },
    ...Object.fromEntries(declared),
  };
}
