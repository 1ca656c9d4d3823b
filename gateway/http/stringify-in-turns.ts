import { setImmediate as nextTurn } from "node:timers/promises";

/** A list of an answer holds up calls for at most about this time, and for its longest element. */
const TURN_MS = 5;

/** As `JSON.stringify`; other work has its turn between the elements of the list that the value is or has. */
export async function stringifyInTurns(
  value: unknown,
): Promise<string | undefined> {
  if (Array.isArray(value)) {
    return listInTurns(value);
  }
  if (value?.constructor !== Object || Object.hasOwn(value, "toJSON")) {
    return JSON.stringify(value);
  }
  const members: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    const text = Array.isArray(member)
      ? await listInTurns(member)
      : JSON.stringify(member);
    if (text !== undefined) {
      members.push(`${JSON.stringify(name)}:${text}`);
    }
  }
  return `{${members.join(",")}}`;
}

async function listInTurns(list: readonly unknown[]): Promise<string> {
  const elements: string[] = [];
  let since = performance.now();
  for (const element of list) {
    elements.push(JSON.stringify(element) ?? "null");
    if (performance.now() - since > TURN_MS) {
      await nextTurn();
      since = performance.now();
    }
  }
  return `[${elements.join(",")}]`;
}
