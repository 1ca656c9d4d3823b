import { afterAll, expect, test } from "vitest";
import { openHistory } from "../../supervisor/history/history.ts";
import { createHome } from "../../supervisor/home/home.ts";
import { buildTestApi } from "../../test/supervisor/console-api.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";

const place = temporaryHome();
createHome(place.home);
const history = openHistory(place.home.history);
afterAll(() => {
  history.close();
  place.remove();
});

test.each([
  ["npx hearth", "npx hearth operator password</code> in the project"],
  [
    "docker exec -it hearth-supervisor hearth",
    "docker exec -it hearth-supervisor hearth operator password</code>. ",
  ],
])("the sign-in page shows commands as %s", async (hearth, expected) => {
  const api = buildTestApi({ history, hearth });
  const { body } = await api.inject({
    url: "/",
    headers: { accept: "text/html" },
  });
  expect(body).toContain(`Run <code>${hearth} open</code>`);
  expect(body).toContain(expected);
  await api.close();
});
