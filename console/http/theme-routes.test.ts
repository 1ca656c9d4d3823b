import Fastify from "fastify";
import { expect, test } from "vitest";
import { cookieIn } from "../../core/cookies.ts";
import { acceptForms } from "./forms.ts";
import { registerThemeRoute } from "./theme-routes.ts";

async function choose(theme: string, referer?: string) {
  const server = Fastify();
  acceptForms(server);
  registerThemeRoute(server);
  const answer = await server.inject({
    method: "POST",
    url: "/theme",
    headers: {
      host: "127.0.0.1:4080",
      "content-type": "application/x-www-form-urlencoded",
      ...(referer === undefined ? {} : { referer }),
    },
    payload: new URLSearchParams({ theme }).toString(),
  });
  const { location, "set-cookie": cookie } = answer.headers;
  return { status: answer.statusCode, location, cookie: String(cookie) };
}

test("the theme is remembered for a year, and the page shown again", async () => {
  expect(await choose("dark", "http://127.0.0.1:4080/keys?page=2")).toEqual({
    status: 303,
    location: "/keys?page=2",
    cookie: "hearth_theme=dark; Path=/; Max-Age=31536000; SameSite=Lax",
  });
});

test.each([
  undefined,
  "https://elsewhere.example/keys",
  "http://127.0.0.1:4080//elsewhere.example",
  "nonsense",
])("with the referer %s it returns to the status page", async (referer) => {
  expect(await choose("light", referer)).toMatchObject({ location: "/" });
});

test("an unknown theme follows the system", async () => {
  expect((await choose("pink; Domain=x")).cookie).toMatch(
    /^hearth_theme=system;/,
  );
});

test("a cookie is found among others", () => {
  const header = "a=1; hearth_theme=dark;b=2";
  expect(cookieIn(header, "hearth_theme")).toBe("dark");
  expect(cookieIn(header, "theme")).toBeUndefined();
  expect(cookieIn(undefined, "a")).toBeUndefined();
});
