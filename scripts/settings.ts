import { readFileSync, writeFileSync } from "node:fs";
import { parseDocument } from "yaml";
import { annotatedStack } from "../infra/config/annotated-stack.ts";
import { projectConfig } from "../infra/config/project-config.ts";
import { inProject } from "../infra/project-files.ts";
import { annotatedStackFile } from "../infra/config/stack-file.ts";
import { CHART_README, chartReadme } from "./chart-readme.ts";

// Writes the files derived from the settings' schema: the annotated stack file and the `config` of Pulumi.yaml. And the table of
// values in the chart's README.
writeFileSync(annotatedStackFile, annotatedStack());

const projectFile = inProject("Pulumi.yaml");
const project = parseDocument(readFileSync(projectFile, "utf8"), {
  version: "1.1",
});
project.set("config", project.createNode(projectConfig()));
writeFileSync(projectFile, project.toString({ lineWidth: 0 }));

writeFileSync(CHART_README, await chartReadme());
