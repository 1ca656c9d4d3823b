import {
  problemAt,
  type Path,
  type Reading,
} from "../../core/config/reading.ts";
import { locate } from "../../core/config/tree.ts";
import type { Fallbacks, GatewayConfig } from "./types.ts";

/**
 * Warns about fallbacks and group aliases of unknown aliases; models in the database may still have that name. As in LiteLLM, fallbacks of
 * `router_settings` replace those of the other section.
 */
export function checkFallbackTargets(
  reading: Reading,
  config: GatewayConfig,
): void {
  const { router } = config;
  const names = new Set([
    ...config.models.map((model) => model.alias),
    ...Object.keys(router.modelGroupAlias),
  ]);
  const wildcards = [...names].filter((name) => name.endsWith("*"));
  const served = (name: string): boolean =>
    names.has(name) ||
    wildcards.some((wildcard) => name.startsWith(wildcard.slice(0, -1)));
  const check = (keys: readonly string[], targets: Iterable<string>): void => {
    const other = ["proxy_settings", ...keys];
    if (
      sectionOf(reading, keys)[0] === "router_settings" &&
      locate(reading.root, other).node !== null
    ) {
      reading.warnings.push(
        problemAt(
          reading,
          other,
          "has no effect beside that of router_settings: write all entries there",
        ),
      );
    }
    const unknown = [...new Set(targets)].filter((name) => !served(name));
    if (unknown.length > 0) {
      reading.warnings.push(
        problemAt(
          reading,
          sectionOf(reading, keys),
          `unknown model_name ${unknown.map((name) => `"${name}"`).join(", ")}: correct or remove it, or add the model`,
        ),
      );
    }
  };
  check(["fallbacks"], targetsOf(router.fallbacks));
  check(["context_window_fallbacks"], targetsOf(router.contextWindowFallbacks));
  check(["content_policy_fallbacks"], targetsOf(router.contentPolicyFallbacks));
  check(["default_fallbacks"], router.defaultFallbacks);
  check(
    ["model_group_alias"],
    Object.values(router.modelGroupAlias).map((target) => target.model),
  );
}

function targetsOf(fallbacks: Fallbacks): readonly string[] {
  return [
    ...Object.keys(fallbacks).filter((alias) => alias !== "*"),
    ...Object.values(fallbacks).flat(),
  ];
}

/** The section that contains the key; LiteLLM allows both. */
function sectionOf(reading: Reading, keys: readonly string[]): Path {
  const router = reading.root.entries.get("router_settings")?.node;
  const inRouter =
    router?.kind === "map" && keys.every((key) => router.entries.has(key));
  return [inRouter ? "router_settings" : "proxy_settings", ...keys];
}
