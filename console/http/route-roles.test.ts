import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { configSchema } from "../../supervisor/config/schema.ts";
import { openHistory, type History } from "../../supervisor/history/history.ts";
import { createHome } from "../../supervisor/home/home.ts";
import { Supervision } from "../../supervisor/supervision.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { buildConsole } from "../console.ts";
import {
  mayRequest,
  requirementOf,
  ROUTE_ROLES,
  routeName,
} from "./route-roles.ts";

let place: ReturnType<typeof temporaryHome>;
let history: History;

beforeEach(() => {
  place = temporaryHome();
  createHome(place.home);
  history = openHistory(place.home.history);
});
afterEach(() => {
  history.close();
  place.remove();
});

/** The names of all routes of a console. */
async function routesOf(env: Readonly<Record<string, string>>) {
  const supervision = new Supervision({
    home: place.home,
    env,
    config: { leftOut: [], config: configSchema.parse({}) },
    history,
    onCheck: () => {},
    onNotice: () => {},
  });
  const routes = new Set<string>();
  const api = buildConsole(supervision, undefined, ({ method, url }) => {
    for (const each of [method].flat()) {
      routes.add(routeName(each, url));
    }
  });
  await api.ready();
  await api.close();
  return routes;
}

test("the table has every route of the console, and no other", async () => {
  const routes = new Set([
    ...(await routesOf({})),
    ...(await routesOf({
      NOTES_URL: "http://127.0.0.1:1",
      HEARTH_JOBS: "on",
    })),
  ]);
  expect([...routes].toSorted()).toEqual(Object.keys(ROUTE_ROLES).toSorted());
});

test("a viewer changes nothing", () => {
  const allowed = Object.entries(ROUTE_ROLES)
    .filter(([, requirement]) => requirement === "viewer")
    .map(([route]) => route)
    .filter((route) => !route.startsWith("GET "));
  expect(allowed).toEqual([
    "POST /playground",
    "POST /playground/answer",
    "POST /api/notes/:vault/history/chunks",
  ]);
});

test("a person without a console role reaches the own page, and nothing else", () => {
  const allowed = Object.entries(ROUTE_ROLES)
    .filter(([, requirement]) => requirement === "user")
    .map(([route]) => route);
  expect(allowed.filter((route) => !/ \/me(\/|$)/.test(route))).toEqual([
    "POST /sign-out",
    "DELETE /api/sign-in",
  ]);
  for (const address of ["/", "/keys", "/metrics", "/api/status"]) {
    expect(mayRequest("user", "GET", address)).toBe(false);
  }
  expect(mayRequest("user", "POST", "/me/0f43/rotate")).toBe(true);
});

test("every template with a form that changes something asks whether the caller may use it", () => {
  const folder = join(import.meta.dirname, "..", "pages", "templates");
  const unasked = readdirSync(folder).filter((name) => {
    const markup = readFileSync(join(folder, name), "utf8");
    return markup.includes('method="post"') && !markup.includes("it.may(");
  });
  // The theme, invitations, signing in and signing out are for everyone; a kept form was sent before.
  expect(unasked).toEqual([
    "frame.eta",
    "invitation.eta",
    "kept-form.eta",
    "sign-in.eta",
  ]);
});

test("what is not in the table requires an admin, unknown paths only a sign-in", () => {
  expect(requirementOf("POST", "/new")).toBe("admin");
  expect(requirementOf("HEAD", "/jobs")).toBe("viewer");
  expect(requirementOf("GET", undefined)).toBe("user");
});

test.each([
  ["POST", "/services/gateway%2Fa/restart", "operator"],
  ["POST", "/jobs/backup_copy/run?x=1", "operator"],
  ["GET", "/keys/new?user=anna", "admin"],
  ["GET", "/keys/0f43?x#y", "viewer"],
  ["GET", "/users/edit?id=/keys/1", "admin"],
  ["POST", "/nowhere", "admin"],
  ["POST", "https://elsewhere.example/jobs/x/run", "admin"],
] as const)(
  "%s %s is for the role %s and those above",
  (method, path, role) => {
    expect(
      (["user", "viewer", "operator", "admin"] as const).filter((each) =>
        mayRequest(each, method, path),
      ),
    ).toEqual(
      {
        viewer: ["viewer", "operator", "admin"],
        operator: ["operator", "admin"],
        admin: ["admin"],
      }[role],
    );
    expect(mayRequest(null, method, path)).toBe(false);
  },
);
