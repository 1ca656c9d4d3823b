import {
  exampleOf,
  isList,
  metaOf,
  settingAt,
  type Setting,
} from "./config-lookup.ts";
import { twoHosts, type StackSettings } from "./stack-settings.ts";

/**
 * The exact command that sets a setting to a valid value. A secret is piped in, or prompted for if only the operator has it:
 * arguments are visible to every user of the machine. What only a command can store is removed.
 */
export function fixCommand(
  path: readonly string[],
  { schema, secrets }: StackSettings = twoHosts,
): string {
  const [top = ""] = path;
  const setting = settingAt([top], schema);
  if (setting !== undefined && secrets.includes(top)) {
    return secretCommand(setting, path);
  }
  const example = exampleAt(path, schema);
  // A list is set element by element.
  const target = isListAt(path, schema) ? [...path, "0"] : path;
  const key = target.reduce((text, step) =>
    /^\d+$/.test(step) ? `${text}[${step}]` : `${text}.${step}`,
  );
  return `npx pulumi config set ${target.length > 1 ? "--path " : ""}${quote(`hearth:${key}`)} ${example.startsWith("-") ? "-- " : ""}${example}`;
}

function secretCommand(
  setting: Setting,
  [top = "", name]: readonly string[],
): string {
  const { source, asks = "value", entry, setBy } = metaOf(setting);
  if (source === undefined && setBy !== undefined) {
    return removeCommand([top]);
  }
  const command = `npx pulumi config set --secret ${
    entry === undefined
      ? `hearth:${top}`
      : `--path hearth:${top}.${name ?? entry}`
  }`;
  return source === undefined
    ? `${command} (it asks for the ${asks})`
    : `${source} | ${command}`;
}

/** The exact command that removes a setting. */
export function removeCommand(path: readonly string[]): string {
  return `npx pulumi config rm ${path.length > 1 ? "--path " : ""}hearth:${path.join(".")}`;
}

/** An element of a list has the list's example. */
function exampleAt(path: readonly string[], schema: Setting): string {
  const setting = settingAt(path, schema);
  const example = setting && exampleOf(setting);
  if (example !== undefined) {
    return example;
  }
  return path.length > 1 ? exampleAt(path.slice(0, -1), schema) : "VALUE";
}

function isListAt(path: readonly string[], schema: Setting): boolean {
  const setting = settingAt(path, schema);
  return setting !== undefined && isList(setting);
}

/** zsh expands brackets as a pattern. */
function quote(text: string): string {
  return /[[\]]/.test(text) ? `'${text}'` : text;
}
