import type { RouterConfig } from "../config/types.ts";
import type { ModelGroup, PricedDeployment } from "./catalog.ts";

/** The tag of deployments for calls that no other deployment is meant for. */
const DEFAULT_TAG = "default";

/**
 * The part of a group that the tags of a call lead to: the deployments that have one of them, else those with the tag
 * `default`. If there are none of these either, all of them, or with `enable_tag_filtering` and a call that has tags null.
 */
export function withTags(
  group: ModelGroup,
  tags: readonly string[],
  { tagFiltering, tagFilteringMatchAny }: RouterConfig,
): ModelGroup | null {
  const all = [...group.deployments, ...group.waiting];
  if (tagFiltering === "off" || all.every((one) => one.tags.length === 0)) {
    return group;
  }
  const matches = (deployment: PricedDeployment) => {
    const has = (tag: string) => deployment.tags.includes(tag);
    return tagFilteringMatchAny ? tags.some(has) : tags.every(has);
  };
  const matching = tags.length === 0 ? [] : all.filter(matches);
  const selected =
    matching.length > 0
      ? matching
      : all.filter((one) => one.tags.includes(DEFAULT_TAG));
  if (selected.length > 0) {
    return narrowed(group, selected);
  }
  return tagFiltering === "required" && tags.length > 0 ? null : group;
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
