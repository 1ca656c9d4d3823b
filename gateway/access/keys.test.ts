import { expect, test } from "vitest";
import { readKey } from "./keys.ts";

test.each([
  [{ authorization: "Bearer sk-a", "x-api-key": "sk-b" }, "sk-a"],
  [{ authorization: "Bearer a", "x-litellm-api-key": "Bearer sk-b" }, "sk-b"],
  [{ "x-litellm-api-key": "sk-c", "x-api-key": "sk-b" }, "sk-c"],
  [{ authorization: "bearer  sk-a " }, "sk-a"],
  [{ authorization: "Basic dTpw", "x-api-key": "sk-b" }, "sk-b"],
  [{ authorization: "Basic dTpw", "x-goog-api-key": "sk-d" }, "sk-d"],
  [{ "x-api-key": "sk-b", "api-key": "sk-c" }, "sk-b"],
  [{ authorization: "sk-a" }, "sk-a"],
  [{ authorization: "Basic dTpw" }, "Basic dTpw"],
  [{ authorization: "Bearer " }, ""],
  [{}, null],
])("the credential of %o is %o", (headers, key) => {
  expect(readKey(headers)).toBe(key);
});
