import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

/** Of a constant at the top of a module: a value, or a list of values. */
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
    selector: ":matches(SpreadElement, SpreadProperty) > ObjectExpression",
    message: "Write the members in place of a spread of them.",
  },
  {
    selector: "SpreadElement > ArrayExpression",
    message: "Write the elements in place of a spread of them.",
  },
  ...CONSTANT_VALUES.flatMap((value) =>
    [value, `TSAsExpression > ${value}`].map((path) => ({
      selector: `:matches(Program, Program > ExportNamedDeclaration) > VariableDeclaration[kind='const'] > VariableDeclarator[id.name=/[a-z]/] > ${path}.init, :matches(Program, Program > ExportNamedDeclaration) > VariableDeclaration[kind='const'] > VariableDeclarator[id.name=/[a-z]/] > TSAsExpression > ${value}.expression`,
      message: "Name a constant in UPPER_CASE.",
    })),
  ),
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
      "max-lines-per-function": [
        "error",
        { max: 100, skipBlankLines: true, skipComments: true },
      ],
      "no-restricted-exports": [
        "error",
        { restrictDefaultExports: { direct: true } },
      ],
      "no-restricted-syntax": ["error", ...RESTRICTED_SYNTAX],
    },
  },
  {
    // A file of tests may group them in one function.
    files: ["**/*.test.ts", "**/*.scenario.ts", "**/*.browser.ts", "test/**"],
    rules: { "max-lines-per-function": "off" },
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
    files: ["**/*.config.ts"],
    rules: { "no-restricted-exports": "off" },
  },
);
