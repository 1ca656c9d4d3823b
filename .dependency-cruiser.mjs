// Which folder may import which (CONTRIBUTING.md): imports only go down, and in no circle, types included.
const MAY_IMPORT = {
  core: [],
  gateway: ["core"],
  notes: ["core"],
  supervisor: ["core"],
  console: ["core", "supervisor"],
  embedded: ["core", "supervisor", "console"],
  cli: ["core", "supervisor", "console", "embedded"],
  infra: ["core"],
};
const FOLDERS = Object.keys(MAY_IMPORT);
const TESTS =
  "\\.(test|scenario|browser|agent)\\.ts$|-(fixture|child)\\.ts$|/testing/";

/** Paths that installed units and releases start: each hands over to the folder that it is in now. */
const ENTRY_POINTS = "^supervisor/(cli/)?main\\.ts$";

function onlyDownFrom(folder) {
  const above = FOLDERS.filter(
    (other) => other !== folder && !MAY_IMPORT[folder].includes(other),
  );
  return {
    name: `${folder}-imports-${MAY_IMPORT[folder].join("-") || "no-folder"}-only`,
    severity: "error",
    from: { path: `^${folder}/`, pathNot: [TESTS, ENTRY_POINTS] },
    to: { path: `^(${above.join("|")})/` },
  };
}

export default {
  forbidden: [
    ...FOLDERS.map(onlyDownFrom),
    {
      name: "no-cycles",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "the-gateway-does-not-load-the-import",
      severity: "error",
      from: { path: "^gateway/", pathNot: ["^gateway/import/", TESTS] },
      to: { path: "^gateway/import/" },
    },
    {
      name: "nothing-but-tests-imports-tests",
      severity: "error",
      from: { path: `^(${FOLDERS.join("|")}|scripts)/`, pathNot: TESTS },
      to: { path: `^test/|${TESTS}` },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "/fixtures/" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { extensions: [".ts", ".js"] },
  },
};
