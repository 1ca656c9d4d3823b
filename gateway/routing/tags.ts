import type { RouterConfig } from "../config/types.ts";
import type { ModelGroup, PricedDeployment } from "./catalog.ts";
import { matchesHeader } from "./caller-pattern.ts";

/** The tag of deployments for calls that no other deployment is meant for. */
const DEFAULT_TAG = "default";

/** What of a call chooses among deployments. */
interface CallTags {
  readonly tags: readonly string[];
  /** The header `User-Agent`; null: none was sent. */
  readonly userAgent: string | null;
}

/**
 * The part of a group that the tags of a call lead to: the deployments that have one of them or whose `tag_regex` matches its
 * client, else those with the tag `default`. If there are none of these either, all of them, or null with
 * `enable_tag_filtering` and a call that has tags, or a client to match.
 */
export function withTags(
  group: ModelGroup,
  { tags, userAgent }: CallTags,
  { tagFiltering, tagFilteringMatchAny }: RouterConfig,
): ModelGroup | null {
  const all = [...group.deployments, ...group.waiting];
  if (tagFiltering === "off" || all.every(hasNoTags)) {
    return group;
  }
  const matches = (deployment: PricedDeployment) => {
    const has = (tag: string) => deployment.tags.includes(tag);
    return tagFilteringMatchAny ? tags.some(has) : tags.every(has);
  };
  // As in LiteLLM, a pattern does not stand in for the tags of a deployment that requires all of them.
  const matchesClient = (deployment: PricedDeployment) =>
    userAgent !== null &&
    (tagFilteringMatchAny || deployment.tags.length === 0) &&
    deployment.tagRegex.some((pattern) =>
      matchesHeader(pattern, `User-Agent: ${userAgent}`),
    );
  const matching = all.filter(
    (one) => (tags.length > 0 && matches(one)) || matchesClient(one),
  );
  const selected =
    matching.length > 0
      ? matching
      : all.filter((one) => one.tags.includes(DEFAULT_TAG));
  if (selected.length > 0) {
    return narrowed(group, selected);
  }
  const chooses =
    tags.length > 0 ||
    (userAgent !== null && all.some((one) => one.tagRegex.length > 0));
  return tagFiltering === "required" && chooses ? null : group;
}

function hasNoTags({ tags, tagRegex }: PricedDeployment): boolean {
  return tags.length === 0 && tagRegex.length === 0;
}

/** The tags of a group's deployments, for the error of a call that has none of them. */
export function tagsOf({
  deployments,
  waiting,
}: ModelGroup): readonly string[] {
  return [
    ...new Set([...deployments, ...waiting].flatMap(({ tags }) => tags)),
  ].toSorted();
}

function narrowed(
  group: ModelGroup,
  selected: readonly PricedDeployment[],
): ModelGroup {
  const among = (one: PricedDeployment) => selected.includes(one);
  const deployments = group.deployments.filter(among);
  const waiting = group.waiting.filter(among);
  const ids = selected.map(({ id }) => id).toSorted();
  return {
    ...group,
    deployments,
    waiting,
    pending: deployments.length === 0 ? (waiting[0]?.pending ?? null) : null,
    variant: [group.variant, ...ids].join(" "),
  };
}
