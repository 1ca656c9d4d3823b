import type { GuardrailCheck, GuardrailConfig } from "../config/types.ts";
import type { Checking, Guard } from "./guard.ts";
import { moderationChecking } from "./moderation.ts";
import { patternsChecking } from "./patterns.ts";
import { secretsChecking } from "./secrets.ts";
import { serviceChecking } from "./service.ts";

/** Expressions are compiled once for each loaded configuration. */
const open = new WeakMap<GuardrailConfig, Guard>();

/** The guardrail of a configuration. */
export function openGuard(config: GuardrailConfig): Guard {
  const known = open.get(config);
  if (known !== undefined) {
    return known;
  }
  const guard = { config, checking: checkingOf(config.check) };
  open.set(config, guard);
  return guard;
}

export function checkingOf(check: GuardrailCheck): Checking {
  switch (check.kind) {
    case "patterns":
      return patternsChecking(check.patterns);
    case "secrets":
      return secretsChecking(check.action);
    case "moderation":
      return moderationChecking(check.model);
    case "service":
      return serviceChecking(check);
  }
}
