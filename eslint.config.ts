import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  globalIgnores(["**/fixtures/**", ".hearth/"]),
  tseslint.configs.recommended,
  {
    rules: {
      "@typescript-eslint/no-unused-vars": [
        "error",
        { argsIgnorePattern: "^_", varsIgnorePattern: "^_" },
      ],
      "no-restricted-exports": [
        "error",
        { restrictDefaultExports: { direct: true } },
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
    files: ["**/*.config.ts"],
    rules: { "no-restricted-exports": "off" },
  },
);
