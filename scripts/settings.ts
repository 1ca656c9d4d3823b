import { readFileSync, writeFileSync } from "node:fs";
import { parseDocument } from "yaml";
import {
  annotatedKubernetes,
  annotatedStack,
  annotatedTwoHosts,
} from "../infra/config/annotated-stack.ts";
import { projectConfig } from "../infra/config/project-config.ts";
import { inProject } from "../infra/project-files.ts";
import { CHART_README, chartReadme } from "./chart-readme.ts";

// Writes the files derived from the settings' schemas: the annotated stack files, the `config` of Pulumi.yaml, and the table of
// values in the chart's README.
for (const list of [annotatedTwoHosts, annotatedKubernetes]) {
  writeFileSync(inProject(list.file), annotatedStack(list));
}

const projectFile = inProject("Pulumi.yaml");
const project = parseDocument(readFileSync(projectFile, "utf8"), {
  version: "1.1",
});
project.set("config", project.createNode(projectConfig()));
writeFileSync(projectFile, project.toString({ lineWidth: 0 }));

writeFileSync(CHART_README, await chartReadme());
