import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Whole systems first: the longest of their files would otherwise run alone at the end, beside an idle core. */
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
