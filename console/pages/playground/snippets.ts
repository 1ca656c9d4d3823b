import { randomUUID } from "node:crypto";
import { shellQuoted } from "../../../core/shell.ts";
import { chatBody, type Prompt } from "./playground-form.ts";

/** A program that makes the call of a form. None contains a key. */
export interface Snippet {
  readonly id: string;
  readonly name: string;
  readonly code: string;
}

/** `address`: where programs reach the gateway. */
export function snippetsOf(
  address: string,
  model: string,
  prompt: Prompt,
): readonly Snippet[] {
  const body = withFiles(chatBody(model, prompt), prompt);
  const message = withFiles(messagesBody(model, prompt), prompt);
  const base = JSON.stringify(address);
  const v1 = JSON.stringify(`${address}/v1`);
  return [
    { id: "code-curl", name: "curl", code: curl(address, body) },
    {
      id: "code-python",
      name: "Python (openai)",
      code: [
        ...pythonImports(prompt),
        "from openai import OpenAI",
        "",
        `client = OpenAI(base_url=${v1}, api_key=os.environ["HEARTH_KEY"])`,
        `answer = client.chat.completions.create(${pythonArguments(body)})`,
        "print(answer.choices[0].message)",
      ].join("\n"),
    },
    {
      id: "code-javascript",
      name: "JavaScript (openai)",
      code: [
        ...(prompt.images.length === 0
          ? []
          : ['import { readFileSync } from "node:fs";']),
        'import OpenAI from "openai";',
        "",
        `const client = new OpenAI({ baseURL: ${v1}, apiKey: process.env.HEARTH_KEY });`,
        `const answer = await client.chat.completions.create(${javascript(body)});`,
        "console.log(answer.choices[0].message);",
      ].join("\n"),
    },
    {
      id: "code-anthropic",
      name: "Python (anthropic)",
      code: [
        ...pythonImports(prompt),
        "from anthropic import Anthropic",
        "",
        `client = Anthropic(base_url=${base}, api_key=os.environ["HEARTH_KEY"])`,
        `answer = client.messages.create(${pythonArguments(message)})`,
        "print(answer.content)",
      ].join("\n"),
    },
  ];
}

function pythonImports({ images }: Prompt): readonly string[] {
  return images.length === 0 ? ["import os"] : ["import base64", "import os"];
}

/** Anthropic requires a maximum. */
const MAX_TOKENS = 1024;

/** The same call in the format of POST /v1/messages. */
function messagesBody(
  model: string,
  { system, text, images, tools }: Prompt,
): Readonly<Record<string, unknown>> {
  const content = [
    ...images.map(({ url }) => ({
      type: "image",
      source: { type: "base64", media_type: typeIn(url), data: url },
    })),
    ...(text === "" ? [] : [{ type: "text", text }]),
  ];
  return {
    model,
    max_tokens: MAX_TOKENS,
    ...(system === "" ? {} : { system }),
    messages: [{ role: "user", content: images.length === 0 ? text : content }],
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(
            ({ function: { name, description, parameters } }) => ({
              name,
              ...(description === undefined ? {} : { description }),
              input_schema: parameters ?? { type: "object" },
            }),
          ),
        }),
  };
}

function typeIn(url: string): string {
  return url.slice("data:".length, url.indexOf(";"));
}

/** A file that the program reads, as base64 after `prefix`. */
class FileData {
  readonly prefix: string;
  readonly name: string;

  constructor(prefix: string, name: string) {
    this.prefix = prefix;
    this.name = name;
  }
}

/** The body with the images as files: their bytes would be longer than the program. */
function withFiles(value: unknown, prompt: Prompt): unknown {
  if (typeof value === "string") {
    const image = prompt.images.find(({ url }) => url === value);
    return image === undefined ? value : new FileData("", image.name);
  }
  if (Array.isArray(value)) {
    return value.map((each) => withFiles(each, prompt));
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      const read = withFiles(each, prompt);
      return [
        name,
        name === "url" && read instanceof FileData
          ? new FileData(prefixOf(String(each)), read.name)
          : read,
      ];
    }),
  );
}

function prefixOf(url: string): string {
  return `data:${typeIn(url)};base64,`;
}

/** How a language writes what JSON does not have in common with it. */
interface Language {
  readonly indent: string;
  readonly constants: Readonly<Record<string, string>>;
  readonly file: (file: FileData) => string;
}

function javascript(value: unknown): string {
  return written(value, {
    indent: "  ",
    constants: {},
    file: ({ prefix, name }) =>
      `${prefix === "" ? "" : `${JSON.stringify(prefix)} + `}readFileSync(${JSON.stringify(name)}, "base64")`,
  });
}

const PYTHON: Language = {
  indent: "    ",
  constants: { true: "True", false: "False", null: "None" },
  file: ({ prefix, name }) =>
    `${prefix === "" ? "" : `${JSON.stringify(prefix)} + `}base64.b64encode(open(${JSON.stringify(name)}, "rb").read()).decode()`,
};

/** The fields of a body as arguments of a function. */
function pythonArguments(body: unknown): string {
  const { indent } = PYTHON;
  const fields = Object.entries(Object(body) as object).map(
    ([name, value]) => `${indent}${name}=${written(value, PYTHON, indent)},\n`,
  );
  return `\n${fields.join("")}`;
}

/** Strings of JSON are strings of Python and JavaScript, too. */
function written(value: unknown, language: Language, indent = ""): string {
  const inner = `${indent}${language.indent}`;
  const list = (brackets: string, items: readonly string[]) =>
    items.length === 0
      ? brackets
      : `${brackets[0]}\n${items.map((item) => `${inner}${item},\n`).join("")}${indent}${brackets[1]}`;
  if (value instanceof FileData) {
    return language.file(value);
  }
  if (Array.isArray(value)) {
    return list(
      "[]",
      value.map((each) => written(each, language, inner)),
    );
  }
  if (typeof value === "object" && value !== null) {
    return list(
      "{}",
      Object.entries(value).map(
        ([name, each]) =>
          `${JSON.stringify(name)}: ${written(each, language, inner)}`,
      ),
    );
  }
  const json = JSON.stringify(value);
  return language.constants[json] ?? json;
}

/** The shell replaces the files; everything else is as it was typed. */
function curl(address: string, body: unknown): string {
  const files: FileData[] = [];
  const mark = randomUUID();
  const json = JSON.stringify(
    body,
    (_name, value: unknown) => {
      if (!(value instanceof FileData)) {
        return value;
      }
      files.push(value);
      return `${mark} ${files.length - 1}`;
    },
    2,
  );
  const escaped = json
    .replace(/[\\$`]/g, String.raw`\$&`)
    .replace(new RegExp(`${mark} (\\d+)`, "g"), (_mark, at: string) => {
      const { prefix = "", name = "" } = files[Number(at)] ?? {};
      return `${prefix}$(base64 < ${shellQuoted(name)} | tr -d '\\n')`;
    });
  return [
    `curl -sS ${shellQuoted(`${address}/v1/chat/completions`)} -H "Authorization: Bearer $HEARTH_KEY" \\`,
    `  -H 'content-type: application/json' -d @- <<END`,
    escaped,
    "END",
  ].join("\n");
}
