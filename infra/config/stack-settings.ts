import type { z } from "zod";
import {
  kubernetesSchema,
  kubernetesSecrets,
} from "../kubernetes/kubernetes-schema.ts";
import { NOT_ON_KUBERNETES } from "../kubernetes/two-host-settings.ts";
import { configSchema, secretFields } from "./config-schema.ts";

/** All settings of one kind of stack. */
export interface StackSettings {
  readonly schema: z.ZodObject;
  /** Settings that must be stored with --secret. */
  readonly secrets: readonly string[];
  /** By path: why this kind has no such setting, although the other has. */
  readonly absent: Readonly<Record<string, string>>;
}

/** A stack on two hosts. */
export const twoHosts: StackSettings = {
  schema: configSchema,
  secrets: secretFields,
  absent: Object.fromEntries(
    Object.keys(kubernetesSchema.shape)
      .filter((name) => !(name in configSchema.shape))
      .map((name) => [
        name,
        "is a setting of a stack on Kubernetes (hearth:runtime is docker)",
      ]),
  ),
};

/** A stack on Kubernetes. */
export const kubernetes: StackSettings = {
  schema: kubernetesSchema,
  secrets: kubernetesSecrets,
  absent: NOT_ON_KUBERNETES,
};
