import { stringify } from "yaml";
import { fixCommand } from "./config-fixes.ts";
import {
  defaultOf,
  exampleOf,
  isList,
  isRequired,
  metaOf,
  partsOf,
  type Setting,
} from "./config-lookup.ts";
import { kubernetes, twoHosts, type StackSettings } from "./stack-settings.ts";

/** The shipped list of the settings of one kind of stack. */
export interface AnnotatedFile {
  /** In the project. */
  readonly file: string;
  readonly settings: StackSettings;
  /** The comment at its head. */
  readonly header: string;
}

const CHANGE = `It is ignored by git, so back it up. Change a setting with \`npx pulumi config set\`, as in \`${fixCommand(["edge", "hostname"])}\`.`;

export const annotatedTwoHosts: AnnotatedFile = {
  file: "config/stack.example.yaml",
  settings: twoHosts,
  header: `All settings of a stack; commented ones are optional or have a default. config/stack.example.yaml is the shipped list. \`npm run init\` creates Pulumi.<stack>.yaml with this list, your hosts and all secrets, encrypted. ${CHANGE}`,
};

export const annotatedKubernetes: AnnotatedFile = {
  file: "config/grown.example.yaml",
  settings: kubernetes,
  header: `All settings of a stack on Kubernetes; commented ones are optional or have a default, and names that a stack on two hosts also has mean the same there. config/grown.example.yaml is the shipped list. \`npm run init -- --kubernetes\` creates Pulumi.grown.yaml with this list and all secrets, encrypted. ${CHANGE}`,
};

const SECRETS =
  "Secrets and other generated values. `npm run init` sets the required ones; to set one by hand:";

/** Longest line of a comment, without its indentation. */
const WIDTH = 100;

/** Pulumi reads YAML 1.1, in which some words, such as "no", are not text unless quoted. */
const YAML_1_1 = { version: "1.1", lineWidth: 0 } as const;

/** The text of a stack file that has every setting, each with its documentation. */
export function annotatedStack({
  settings: kind,
  header,
}: AnnotatedFile): string {
  const settings = Object.entries(kind.schema.shape).map(([name, setting]) => ({
    name,
    setting,
    byCommand: isByCommand(name, kind),
  }));
  const described = new Set<string>();
  const shown = settings
    .filter(({ byCommand }) => !byCommand)
    .map(({ name, setting }) => linesOf(`hearth:${name}`, setting, described));
  const commands = settings
    .filter(({ byCommand }) => byCommand)
    .map(({ name, setting }) => [
      ...comment(documentationOf(setting)),
      `#   ${metaOf(setting).setBy === undefined ? fixCommand([name], kind) : `hearth:${name}`}`,
    ]);
  return [
    ...comment(header),
    "config:",
    ...[...shown, comment(SECRETS), ...commands]
      .flatMap((lines) => [...lines, ""])
      .slice(0, -1)
      .map((line) => (line === "" ? line : `  ${line}`)),
    "",
  ].join("\n");
}

/** Whether the value is printed or requested by a command: the file shows that command, never a value. */
function isByCommand(name: string, settings: StackSettings): boolean {
  return (
    settings.secrets.includes(name) ||
    /\$\(|< |\(it asks for /.test(fixCommand([name], settings))
  );
}

/**
 * A setting with its documentation, commented out if it is optional, unless its group is. Documentation is written once: the
 * settings of the second host repeat those of the first.
 */
function linesOf(
  name: string,
  setting: Setting,
  described: Set<string>,
  inComment = false,
): readonly string[] {
  const optional = !isRequired(setting);
  const documentation = documentationOf(setting);
  const head = described.has(documentation) ? [] : comment(documentation);
  described.add(documentation);
  const parts = Object.entries(partsOf(setting)).filter(
    ([, part]) =>
      isRequired(part) ||
      metaOf(part).description === undefined ||
      !described.has(documentationOf(part)),
  );
  const lines =
    parts.length === 0
      ? stringify({ [name]: valueOf(setting) }, YAML_1_1)
          .trimEnd()
          .split("\n")
      : [
          `${name}:`,
          ...parts
            .flatMap(([key, part]) =>
              linesOf(key, part, described, inComment || optional),
            )
            .map((line) => `  ${line}`),
        ];
  return [
    ...head,
    ...(optional && !inComment ? lines.map((line) => `# ${line}`) : lines),
  ];
}

/** What a setting means, which command sets it, and its default where the example is another value. */
function documentationOf(setting: Setting): string {
  const { description = "", setBy } = metaOf(setting);
  const value = defaultOf(setting);
  return [
    description,
    ...(setBy === undefined ? [] : [`Set by \`${setBy}\`.`]),
    ...(typeof value === "string" && value !== exampleOf(setting)
      ? [`Default: ${value}.`]
      : []),
  ].join(" ");
}

function valueOf(setting: Setting): unknown {
  const example = exampleOf(setting);
  if (isList(setting)) {
    return defaultOf(setting) ?? [example];
  }
  if (example?.startsWith("{") === true) {
    return JSON.parse(example);
  }
  return /^\d+$/.test(example ?? "") ? Number(example) : example;
}

/** A paragraph as lines of a comment. */
function comment(text: string): readonly string[] {
  const lines: string[] = [];
  // A command in backquotes stays on one line.
  for (const [word] of text.matchAll(/`[^`]*`\S*|\S+/g)) {
    const line = `${lines.at(-1) ?? "#"} ${word}`;
    if (lines.length > 0 && line.length > WIDTH) {
      lines.push(`# ${word}`);
    } else {
      lines.splice(-1, 1, line);
    }
  }
  return lines;
}
