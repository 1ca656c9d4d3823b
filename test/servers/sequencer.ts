import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Runs tests of whole systems first; otherwise the longest file would run alone at the end, with a core idle. */
export class SystemsFirst extends BaseSequencer {
  override async sort(
    files: TestSpecification[],
  ): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const ofSystems = `${this.ctx.config.root}/test/`;
    const rank = ({ moduleId }: TestSpecification) =>
      moduleId.startsWith(ofSystems) ? 0 : 1;
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
