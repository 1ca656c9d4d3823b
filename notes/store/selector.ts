// CouchDB's mango selectors. pouchdb-selector-core was tried: it lets `$ne` match a missing member, which CouchDB
// does not, so every LiveSync pull would have included deleted chunks.
import { isRecord } from "../../core/json.ts";
import { Refusal } from "../refusal.ts";
import { openRegularExpressions } from "./regular-expression.ts";
import { openBudget, type Budget } from "./work-budget.ts";

/** Whether a value matches; `undefined` means a missing member. */
type Test = (value: unknown, raw: boolean) => boolean;

/** A request has room for a million, which take seconds to compile; meanwhile the vault would answer no other request. */
const MAX_CONDITIONS = 50_000;

/** To list the members of an object takes longer than to read a list. */
const STEPS_PER_MEMBER = 10;

type Matches = (document: Readonly<Record<string, unknown>>) => boolean;

export interface Selector {
  readonly matches: Matches;
  /** Only the conditions that read no other members than these; `isWhole` if they are all. Undefined if there are none. */
  readonly only: (
    members: ReadonlySet<string>,
  ) => { readonly matches: Matches; readonly isWhole: boolean } | undefined;
}

/** State shared by the conditions of one selector. */
interface Context {
  /** Throws if a selector gets more conditions than it may hold. */
  readonly count: (conditions: number) => void;
  /** The first names of all member paths that a condition reads. */
  readonly members: Set<string>;
  readonly budget: Budget;
  readonly regularExpression: (argument: string) => (text: string) => boolean;
}

/** Compiles a selector; throws `invalid_operator` for unknown operators. */
export function compileSelector(
  selector: Readonly<Record<string, unknown>>,
): Selector {
  const budget = openBudget();
  const regularExpression = openRegularExpressions(budget);
  const count = countConditions();
  const conditions = Object.entries(selector).map(([name, condition]) => {
    const members = new Set<string>();
    const context = { count, members, budget, regularExpression };
    return { members, test: all({ [name]: condition }, false, context) };
  });
  const matching = (some: typeof conditions): Matches => {
    const test = everyOf(
      some.map((condition) => condition.test),
      budget,
    );
    // One document must not block the vault's other requests.
    return (document) => {
      budget.reset();
      return test(document, false) && !budget.isSpent();
    };
  };
  return {
    matches: matching(conditions),
    only: (members) => {
      const some = conditions.filter((condition) =>
        [...condition.members].every((name) => members.has(name)),
      );
      const isWhole = some.length === conditions.length;
      return some.length === 0 && !isWhole
        ? undefined
        : { matches: matching(some), isWhole };
    },
  };
}

function countConditions(): Context["count"] {
  let left = MAX_CONDITIONS;
  return (conditions) => {
    left -= conditions;
    if (left < 0) {
      throw new Refusal(
        "bad_request",
        `A selector may hold at most ${MAX_CONDITIONS} conditions.`,
      );
    }
  };
}

const collator = new Intl.Collator("und");

/** Order of strings as CouchDB's indexes collate them. */
export function collate(a: string, b: string): number {
  return collator.compare(a, b);
}

function all(
  selector: Readonly<Record<string, unknown>>,
  negated: boolean,
  context: Context,
): Test {
  // An empty selector is a condition, too.
  const entries = Object.entries(selector);
  context.count(Math.max(1, entries.length));
  const tests = entries.map(([name, condition]) =>
    name.startsWith("$")
      ? operator(name, condition, negated, context)
      : member(name, condition, negated, context),
  );
  return negated
    ? anyOf(tests, context.budget)
    : everyOf(tests, context.budget);
}

function everyOf(tests: readonly Test[], budget: Budget): Test {
  return (value, raw) =>
    budget.spend(tests.length) && tests.every((test) => test(value, raw));
}

function anyOf(tests: readonly Test[], budget: Budget): Test {
  return (value, raw) =>
    budget.spend(tests.length) && tests.some((test) => test(value, raw));
}

function member(
  path: string,
  condition: unknown,
  negated: boolean,
  context: Context,
): Test {
  const names = memberPath(path);
  context.members.add(names[0]!);
  // What is asked of the member's value is not asked of the document.
  const inner = { ...context, members: new Set<string>() };
  const test =
    isRecord(condition) && Object.keys(condition).length > 0
      ? all(condition, negated, inner)
      : operator("$eq", condition, negated, inner);
  const acceptsMissing = wantsMissing(condition, negated);
  return (value, raw) => {
    if (!context.budget.spend(names.length)) {
      return false;
    }
    const found = memberAt(value, names);
    if (found === undefined) {
      return acceptsMissing;
    }
    return test(found, raw || path === "_id");
  };
}

/** Whether a condition is equivalent to `$exists: false`. */
function wantsMissing(condition: unknown, negated: boolean): boolean {
  if (!isRecord(condition) || Object.keys(condition).length !== 1) {
    return false;
  }
  return "$not" in condition
    ? wantsMissing(condition.$not, !negated)
    : condition.$exists === negated;
}

/** The names of a path such as `a.b`; a dot after a backslash belongs to the name. */
export function memberPath(path: string): string[] {
  return path.split(/(?<!\\)\./).map((name) => name.replaceAll("\\.", "."));
}

/** The value at a path, or undefined. */
export function memberAt(value: unknown, names: readonly string[]): unknown {
  let found = value;
  for (const name of names) {
    if (Array.isArray(found) && /^\d+$/.test(name)) {
      found = found[Number(name)];
    } else if (isRecord(found) && Object.hasOwn(found, name)) {
      found = found[name];
    } else {
      return undefined;
    }
  }
  return found;
}

const opposites: Readonly<Record<string, string>> = {
  $lt: "$gte",
  $lte: "$gt",
  $eq: "$ne",
  $ne: "$eq",
  $gte: "$lt",
  $gt: "$lte",
  $in: "$nin",
  $nin: "$in",
};

function operator(
  name: string,
  argument: unknown,
  negated: boolean,
  context: Context,
): Test {
  switch (name) {
    case "$and":
    case "$or": {
      const tests = selectorList(name, argument).map((selector) =>
        all(selector, negated, context),
      );
      return (name === "$and") !== negated
        ? everyOf(tests, context.budget)
        : anyOf(tests, context.budget);
    }
    case "$nor": {
      const tests = selectorList(name, argument).map((selector) =>
        all(selector, !negated, context),
      );
      return negated
        ? anyOf(tests, context.budget)
        : everyOf(tests, context.budget);
    }
    case "$not":
      return isRecord(argument)
        ? all(argument, !negated, context)
        : operator("$eq", argument, !negated, context);
    case "$exists": {
      if (typeof argument !== "boolean") {
        throw badArgument(name, argument);
      }
      return (value) => (value !== undefined) === (argument !== negated);
    }
    default: {
      const opposite = opposites[name];
      if (negated && opposite !== undefined) {
        return plain(opposite, argument, context);
      }
      const test = plain(name, argument, context);
      return negated ? (value, raw) => !test(value, raw) : test;
    }
  }
}

function plain(name: string, argument: unknown, context: Context): Test {
  if (!Object.hasOwn(OPERATORS, name)) {
    throw new Refusal("invalid_operator", `Invalid operator: ${name}`);
  }
  // Without a member's name, it reads the whole document.
  context.members.add("");
  return OPERATORS[name]!(argument, context, name);
}

type Operator = (argument: unknown, context: Context, name: string) => Test;

const OPERATORS: Readonly<Record<string, Operator>> = {
  $lt: comparing((order) => order < 0),
  $lte: comparing((order) => order <= 0),
  $eq: comparing((order) => order === 0),
  $ne: comparing((order) => order !== 0),
  $gte: comparing((order) => order >= 0),
  $gt: comparing((order) => order > 0),
  $in: within,
  $nin: (argument, context, name) => {
    const test = within(argument, context, name);
    return (value, raw) => !test(value, raw);
  },
  $all: (argument, context, name) => {
    const list = listArgument(name, argument);
    return (value) =>
      Array.isArray(value) &&
      list.length > 0 &&
      context.budget.spend(value.length * list.length) &&
      list.every((wanted) =>
        value.some(
          (item) => compare(item, wanted, false, context.budget) === 0,
        ),
      );
  },
  $size: (argument, _, name) => {
    if (!isCount(argument)) {
      throw badArgument(name, argument);
    }
    return (value) => Array.isArray(value) && value.length === argument;
  },
  $type: (argument, _, name) => {
    const type = stringArgument(name, argument);
    return (value) => typeName(value) === type;
  },
  $mod: remainder,
  $regex: (argument, context, name) => {
    const matches = context.regularExpression(stringArgument(name, argument));
    return (value) => typeof value === "string" && matches(value);
  },
  $beginsWith: (argument, _, name) => {
    const prefix = stringArgument(name, argument);
    return (value) => typeof value === "string" && value.startsWith(prefix);
  },
  $elemMatch: (argument, context, name) => {
    const test = selectorArgument(name, argument, context);
    return (value, raw) =>
      Array.isArray(value) &&
      context.budget.spend(value.length) &&
      value.some((item) => test(item, raw));
  },
  $allMatch: (argument, context, name) => {
    const test = selectorArgument(name, argument, context);
    return (value, raw) =>
      Array.isArray(value) &&
      value.length > 0 &&
      context.budget.spend(value.length) &&
      value.every((item) => test(item, raw));
  },
  $keyMapMatch: (argument, context, name) => {
    const test = selectorArgument(name, argument, context);
    return (value, raw) => {
      const keys =
        isRecord(value) && !context.budget.isSpent() ? Object.keys(value) : [];
      return (
        context.budget.spend(keys.length * STEPS_PER_MEMBER) &&
        keys.some((key) => test(key, raw))
      );
    };
  },
};

function comparing(accepts: (order: number) => boolean): Operator {
  return (argument, { budget }) =>
    (value, raw) =>
      accepts(compare(value, argument, raw, budget));
}

function within(argument: unknown, { budget }: Context, name: string): Test {
  const list = listArgument(name, argument);
  const isListed = (value: unknown): boolean =>
    list.some((wanted) => compare(value, wanted, false, budget) === 0);
  return (value) => {
    const items = Array.isArray(value) ? value : [value];
    if (!budget.spend(items.length * list.length)) {
      return false;
    }
    return items.some(isListed) || isListed(value);
  };
}

function remainder(argument: unknown, _: Context, name: string): Test {
  const [divisor, rest] = listArgument(name, argument);
  if (!Number.isInteger(divisor) || divisor === 0 || !Number.isInteger(rest)) {
    throw badArgument(name, argument);
  }
  return (value) =>
    Number.isInteger(value) && (value as number) % (divisor as number) === rest;
}

function stringArgument(name: string, argument: unknown): string {
  if (typeof argument !== "string") {
    throw badArgument(name, argument);
  }
  return argument;
}

function selectorArgument(
  name: string,
  argument: unknown,
  context: Context,
): Test {
  if (!isRecord(argument)) {
    throw badArgument(name, argument);
  }
  return all(argument, false, context);
}

function selectorList(
  name: string,
  argument: unknown,
): Record<string, unknown>[] {
  const list = listArgument(name, argument);
  if (!list.every(isRecord)) {
    throw badArgument(name, argument);
  }
  return list;
}

function listArgument(name: string, argument: unknown): unknown[] {
  if (!Array.isArray(argument)) {
    throw badArgument(name, argument);
  }
  return argument;
}

function badArgument(name: string, argument: unknown): Refusal {
  return new Refusal(
    "bad_request",
    `Invalid argument for ${name}: ${JSON.stringify(argument)}`,
  );
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0;
}

function typeName(value: unknown): string {
  if (value === null) {
    return "null";
  }
  return Array.isArray(value) ? "array" : typeof value;
}

/** Null before booleans, numbers, strings, arrays, objects. `raw` compares strings by code point, as for ids. */
function compare(a: unknown, b: unknown, raw: boolean, budget: Budget): number {
  const rank = rankOf(a) - rankOf(b);
  if (rank !== 0) {
    return rank;
  }
  if (typeof a === "string" && typeof b === "string") {
    if (!budget.spend(Math.min(a.length, b.length))) {
      return 0;
    }
    return raw ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : collate(a, b);
  }
  if (typeof a === "number" || typeof a === "boolean") {
    return Number(a) - Number(b);
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    return compareLists(a, b, raw, budget);
  }
  if (isRecord(a) && isRecord(b) && !budget.isSpent()) {
    const [ofA, ofB] = [Object.entries(a), Object.entries(b)];
    budget.spend((ofA.length + ofB.length) * STEPS_PER_MEMBER);
    return compareLists(ofA, ofB, raw, budget);
  }
  return 0;
}

function compareLists(
  a: readonly unknown[],
  b: readonly unknown[],
  raw: boolean,
  budget: Budget,
): number {
  const shared = Math.min(a.length, b.length);
  if (!budget.spend(shared)) {
    return 0;
  }
  for (let index = 0; index < shared; index += 1) {
    const order = compare(a[index], b[index], raw, budget);
    if (order !== 0) {
      return order;
    }
  }
  return a.length - b.length;
}

function rankOf(value: unknown): number {
  if (value === null || value === undefined) {
    return 0;
  }
  if (typeof value === "boolean") {
    return 1;
  }
  if (typeof value === "number") {
    return 2;
  }
  if (typeof value === "string") {
    return 3;
  }
  return Array.isArray(value) ? 4 : 5;
}
