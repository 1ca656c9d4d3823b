import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

/** A constant at the top of a module, named otherwise. */
const OTHERWISE_NAMED =
  ":matches(Program, Program > ExportNamedDeclaration) > VariableDeclaration[kind='const'] > VariableDeclarator[id.name=/[a-z]/]";
/** What such a constant holds: a value, or a list of values. */
const CONSTANT_VALUES = [
  "Literal",
  "TemplateLiteral[expressions.length=0]",
  "UnaryExpression[argument.type='Literal']",
  "BinaryExpression[left.type=/^(Literal|BinaryExpression)$/][right.type='Literal']",
  "ArrayExpression[elements.length>0]",
  "NewExpression[callee.name=/^(Set|Map)$/][arguments.length>0]",
];

const RESTRICTED_SYNTAX = [
  {
    selector: "SpreadElement > ObjectExpression",
    message: "Write the members in place of a spread of them.",
  },
  {
    selector: "SpreadElement > ArrayExpression",
    message: "Write the elements in place of a spread of them.",
  },
  {
    selector: ":matches(ExportNamedDeclaration, ExportAllDeclaration)[source]",
    message: "Import a name from the file that declares it.",
  },
  ...CONSTANT_VALUES.flatMap((value) => [
    `${OTHERWISE_NAMED} > ${value}.init`,
    `${OTHERWISE_NAMED} > TSAsExpression > ${value}.expression`,
  ]).map((selector) => ({
    selector,
    message: "Name a constant in UPPER_CASE.",
  })),
];

export default defineConfig(
  globalIgnores(["**/fixtures/**", ".hearth/"]),
  tseslint.configs.recommended,
  {
    rules: {
      "@typescript-eslint/no-unused-vars": [
        "error",
        { argsIgnorePattern: "^_", varsIgnorePattern: "^_" },
      ],
      "@typescript-eslint/consistent-type-definitions": ["error", "interface"],
      curly: ["error", "all"],
      "no-restricted-exports": [
        "error",
        { restrictDefaultExports: { direct: true } },
      ],
      "no-restricted-syntax": ["error", ...RESTRICTED_SYNTAX],
    },
  },
  {
    // Programs are started in one place, which keeps arguments and variables out of messages.
    files: ["**/*.ts", "**/*.js"],
    ignores: [
      "core/execute.ts",
      "**/*.test.ts",
      "**/testing/**",
      "test/**",
      // Runs before any package is installed.
      "bin/**",
      // Must not take the memory of execa; the reason is in the file.
      "supervisor/runtimes/process/launch.ts",
    ],
    rules: {
      "no-restricted-imports": [
        "error",
        ...["node:child_process", "child_process"].map((name) => ({
          name,
          message: "Start programs with core/execute.ts.",
        })),
      ],
    },
  },
  {
    // A longer function has a seam to split it at, or a sentence with `eslint-disable-next-line` that says why it has none.
    files: ["**/*.ts", "**/*.js"],
    ignores: [
      "**/*.test.ts",
      "**/*-fixture.ts",
      "**/*-child.ts",
      "**/testing/**",
      "test/**",
    ],
    rules: {
      "max-lines-per-function": [
        "error",
        { max: 60, skipBlankLines: true, skipComments: true },
      ],
    },
  },
  {
    // Other test files share their modules: a replaced one would stay with whatever imports it (vitest.config.ts).
    files: ["**/*.test.ts"],
    ignores: ["**/*.mocked.test.ts"],
    rules: {
      "no-restricted-properties": [
        "error",
        ...["mock", "doMock"].map((property) => ({
          object: "vi",
          property,
          message: "Name the file *.mocked.test.ts.",
        })),
      ],
    },
  },
  {
    // Tools that load these files ask for a default export.
    files: ["**/*.config.ts", ".dependency-cruiser.mjs"],
    rules: { "no-restricted-exports": "off" },
  },
);
