import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { chatBody, type Prompt } from "./playground-form.ts";
import { snippetsOf } from "./snippets.ts";

const ADDRESS = "https://ai.example.org";
const IMAGE = {
  name: "a cat's $HOME `x`.png",
  bytes: Buffer.from("cat\u00ff"),
};

const prompt: Prompt = {
  system: "",
  text: 'It\'s $HOME, `pwd`, \\n "quoted"\nEND\nüñ \u2028 \u0000 ${x}',
  images: [],
  tools: [
    {
      type: "function",
      function: { name: "clock", parameters: { type: "object", strict: true } },
    },
  ],
};
const withImage: Prompt = {
  ...prompt,
  system: "Be brief.",
  images: [
    {
      name: IMAGE.name,
      url: `data:image/png;base64,${IMAGE.bytes.toString("base64")}`,
    },
  ],
};

function codeOf(name: string, asked: Prompt): string {
  return (
    snippetsOf(ADDRESS, "mock", asked).find((each) => each.name === name)
      ?.code ?? ""
  );
}

/** Runs code in a folder with the image; `curl` and the SDKs only print what they would send. */
function inFolder<Result>(act: (folder: string) => Result): Result {
  const folder = mkdtempSync(join(tmpdir(), "hearth-snippets-"));
  try {
    writeFileSync(join(folder, IMAGE.name), IMAGE.bytes);
    return act(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.each([
  ["text", prompt],
  ["images", withImage],
])("curl sends exactly the body of the form: %s", (_what, asked) => {
  const sent = inFolder((folder) =>
    execFileSync("sh", ["-c", `curl() { cat; }\n${codeOf("curl", asked)}`], {
      cwd: folder,
      encoding: "utf8",
      env: { PATH: process.env["PATH"] ?? "" },
    }),
  );
  expect(JSON.parse(sent)).toEqual(chatBody("mock", asked));
});

test.each([
  ["text", prompt],
  ["images", withImage],
])("JavaScript sends exactly the body of the form: %s", (_what, asked) => {
  const code = codeOf("JavaScript (openai)", asked);
  const sent = inFolder((folder) => {
    const file = join(folder, "call.mjs");
    const stub = `class OpenAI { chat = { completions: { create: async (body) => (console.log(JSON.stringify(body)), process.exit()) } } }`;
    writeFileSync(
      file,
      code.replace('import OpenAI from "openai";', () => stub),
    );
    return execFileSync(process.execPath, [file], {
      cwd: folder,
      encoding: "utf8",
    });
  });
  expect(JSON.parse(sent)).toEqual(chatBody("mock", asked));
});

test("Python writes constants and files in its own way", () => {
  const code = codeOf("Python (openai)", withImage);
  expect(code).toContain('"strict": True,');
  expect(code).toContain(
    `"url": "data:image/png;base64," + base64.b64encode(open(${JSON.stringify(IMAGE.name)}, "rb").read()).decode(),`,
  );
  expect(code).toContain("import base64\nimport os\nfrom openai");
});

test("Anthropic's SDK gets the call in its own format", () => {
  const code = codeOf("Python (anthropic)", withImage);
  expect(code).toContain(`Anthropic(base_url="${ADDRESS}", `);
  expect(code).toContain('system="Be brief.",');
  expect(code).toContain('"media_type": "image/png",');
  expect(code).toMatch(/"data": base64\.b64encode/);
  expect(code).toMatch(/"name": "clock",\s+"input_schema": \{/);
});

test.skipIf(!hasPython())(
  "Python reads the arguments as they were meant",
  () => {
    const code = codeOf("Python (openai)", withImage)
      .replace("from openai import OpenAI", "import json")
      .replace(/^client = .*$/m, "")
      .replace("client.chat.completions.create(", "dict(")
      .replace("print(answer.choices[0].message)", "print(json.dumps(answer))");
    const sent = inFolder((folder) =>
      execFileSync("python3", ["-c", code], { cwd: folder, encoding: "utf8" }),
    );
    expect(JSON.parse(sent)).toEqual(chatBody("mock", withImage));
  },
);

function hasPython(): boolean {
  return spawnSync("python3", ["--version"]).status === 0;
}

test("no program contains a key or the bytes of an image", () => {
  for (const { code } of snippetsOf(ADDRESS, "mock", withImage)) {
    expect(code).toContain("HEARTH_KEY");
    expect(code).not.toContain(IMAGE.bytes.toString("base64"));
  }
});
