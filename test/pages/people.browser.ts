import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hashKey } from "../../gateway/access/keys.ts";
import type { AdminFixture } from "../servers/admin.ts";
import { findViolations, overflowOf } from "./browser.ts";
import { checkEveryScreen } from "./every-screen.ts";
import {
  confirm,
  mainText as main,
  PATIENT,
  startGatewayTestbed,
  type GatewayTestbed,
} from "./gateway-testbed.ts";

const hostile = `<img src=x onerror="document.title=1">/../${"endless".repeat(20)} 🔥 \u202e?#`;

let browser: Browser;
let fixture: AdminFixture;
let testbed: GatewayTestbed;
let open: GatewayTestbed["open"];

beforeAll(async () => {
  testbed = await startGatewayTestbed();
  ({ browser, fixture, open } = testbed);
});
afterAll(() => testbed?.stop());

const expectMessage = (page: Page, words: string) =>
  page.getByRole("status").getByText(words).waitFor();

test("empty lists explain users and teams", async () => {
  const { page } = await open("/users");
  expect(await page.textContent("h1")).toBe("No users yet.");
  expect(await main(page)).toContain("combines the spend of several keys");
  await page.getByRole("link", { name: "Teams" }).click();
  expect(await page.textContent("h1")).toBe("No teams yet.");
  expect(await findViolations(page)).toEqual([]);
  await page.context().close();
});

test("a user is created, spends across keys, is edited and deleted", async () => {
  const { page, complaints } = await open("/users", { javaScript: false });
  await page.getByRole("link", { name: "Create user" }).click();
  await page.getByLabel("Name", { exact: true }).fill("anna");
  await page.getByLabel("Email address").fill("not an address");
  await page.getByLabel("Budget (USD)").fill("2");
  await page.getByRole("button", { name: "Create user" }).click();
  expect(await page.locator("#f-user_email-mistake").innerText()).toContain(
    "Must be an e-mail address",
  );
  await page.getByLabel("Email address").fill("anna@example.org");
  await page.getByRole("button", { name: "Create user" }).click();
  await expectMessage(page, 'User "anna" created.');
  expect(complaints.filter((each) => !each.includes("400"))).toEqual([]);
  await page.getByRole("link", { name: "Create key" }).click();
  expect(await page.getByLabel("User").inputValue()).toBe("anna");
  await page.getByRole("button", { name: "Create key" }).click();
  const key = (await page.textContent("#the-key")) ?? "";
  await fixture.spend({ api_key: hashKey(key), user_id: "anna", spend: 1.5 });
  await page.goto(`${testbed.address}/users/user?id=anna`);
  expect(await page.textContent("h1")).toBe("anna has spent $ 1.50 of $ 2.00.");
  expect(await main(page)).toContain(key.slice(-4));
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Budget (USD)").fill("1");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expectMessage(page, 'User "anna" updated');
  await expect
    .poll(async () => (await fixture.chat(key, "no")).status, PATIENT)
    .toBe(400);
  await page.goto(`${testbed.address}/users?search=EXAMPLE.org`);
  expect(await page.locator("tbody").innerText()).toMatch(
    /anna[^]*over budget[^]*150 %[^]*call models/,
  );
  await page.goto(`${testbed.address}/users`);
  await page.getByRole("link", { name: "over budget" }).click();
  expect(await page.textContent("h1")).toBe("The only user is over budget.");
  await page.getByRole("link", { name: "anna", exact: true }).click();
  await confirm(page, "Delete", "Anna");
  expect(await main(page)).toContain("Nothing was deleted");
  await page.getByRole("link", { name: "Go back" }).click();
  await confirm(page, "Delete", "anna");
  await expectMessage(page, 'User "anna" and its keys deleted');
  expect((await fixture.chat(key, "gone")).status).toBe(401);
  await page.context().close();
});

test("a team pays for its members, each with a budget", async () => {
  const { page } = await open("/teams/new");
  await page.getByLabel("Name", { exact: true }).fill("Kitchen");
  await page.getByLabel("ID").fill("kitchen");
  await page.getByLabel("Budget (USD)", { exact: true }).fill("5");
  await page.getByLabel("Budget per member").fill("1");
  await page.getByLabel("Budgets of members reset").selectOption("1mo");
  await page.getByRole("button", { name: "Create team" }).click();
  await expectMessage(page, 'Team "Kitchen" created.');
  await page.locator("summary", { hasText: "Add member…" }).click();
  await page.getByLabel("User").fill("bob");
  await page.getByLabel("Role").selectOption("admin");
  await page.getByRole("button", { name: "Add member" }).click();
  await expectMessage(page, 'Member "bob" added.');
  await confirmAdd(page, "bob");
  expect(await main(page)).toContain(
    'User "bob" is already a member of the team.',
  );
  await page.goto(`${testbed.address}/teams/team?id=kitchen`);
  expect(await main(page)).toMatch(/bob[^]*within budget[^]*of \$ 1\.00/);
  await page.getByRole("link", { name: "bob" }).click();
  await page.getByLabel("Budget in the team").fill("-1");
  await page.getByRole("button", { name: "Save changes" }).click();
  expect(await page.locator("#f-max_budget-mistake").innerText()).toContain(
    "Must be at least 0 dollars",
  );
  expect(await findViolations(page)).toEqual([]);
  await page.getByLabel("Budget in the team").fill("0.5");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expectMessage(page, 'Member "bob" updated.');
  const key = await fixture.createKey({ team_id: "kitchen", user_id: "bob" });
  await fixture.spend({
    api_key: hashKey(key),
    team_id: "kitchen",
    user_id: "bob",
    spend: 0.5,
  });
  await fixture.createKey({ team_id: "kitchen", user_id: "carl" });
  await page.goto(`${testbed.address}/users/user?id=carl`);
  expect(await main(page)).toMatch(
    /Not a member of any team\.\s+Keys of this user are paid by:\s+Kitchen/,
  );
  await page.goto(`${testbed.address}/users/user?id=default_user_id`);
  expect(await main(page)).toContain(
    "The gateway books calls with the master key to this user.",
  );
  await page.goto(`${testbed.address}/teams/team?id=kitchen`);
  expect(await page.textContent("h1")).toBe(
    "Kitchen has spent $ 0.50 of $ 5.00.",
  );
  expect(await main(page)).toContain("over budget");
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Budget (USD)", { exact: true }).fill("9");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expectMessage(page, 'Team "Kitchen" updated');
  await confirm(page, "Block");
  await page.getByRole("heading", { name: "Kitchen is blocked." }).waitFor();
  expect(await fixture.get("/team/info?team_id=kitchen")).toMatchObject({
    team_info: {
      blocked: true,
      max_budget: 9,
      team_member_budget: 1,
      team_member_budget_duration: "1mo",
    },
  });
  await confirm(page, "Unblock");
  await expectMessage(page, 'Team "Kitchen" unblocked.');
  await page.getByRole("link", { name: "bob" }).click();
  await confirm(page, "Remove member");
  await expectMessage(page, 'Member "bob" removed.');
  await confirm(page, "Delete", "Kitchen");
  await expectMessage(page, 'Team "Kitchen" and its keys deleted');
  expect(
    await fixture.rejected("GET", "/team/info?team_id=kitchen"),
  ).toMatchObject({ status: 404 });
  await page.context().close();
});

test("a second team of the same name is rejected at its field, for a new team and a renamed one", async () => {
  await fixture.post("/team/new", { team_id: "one", team_alias: "Crew" });
  await fixture.post("/team/new", { team_id: "two", team_alias: "Band" });
  const { page } = await open("/teams/new");
  const name = page.getByLabel("Name", { exact: true });
  await name.fill("crew");
  await page.getByRole("button", { name: "Create team" }).click();
  const mistake = page.locator("#f-team_alias-mistake");
  expect(await mistake.innerText()).toBe("Already exists: choose another one.");
  expect(await name.inputValue()).toBe("crew");
  expect(await name.evaluate((each) => each.matches(":focus"))).toBe(true);
  await page.goto(`${testbed.address}/teams/edit?id=two`);
  await name.fill("Crew");
  await page.getByRole("button", { name: "Save changes" }).click();
  expect(await mistake.innerText()).toBe("Already exists: choose another one.");
  await name.fill("BAND");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expectMessage(page, 'Team "BAND" updated');
  await page.context().close();
});

async function confirmAdd(page: Page, user: string): Promise<void> {
  await page.locator("summary", { hasText: "Add member…" }).click();
  await page.getByLabel("User").fill(user);
  await page.getByRole("button", { name: "Add member" }).click();
}

test("hostile names run nothing, fit every screen and can be reached", async () => {
  await fixture.post("/user/new", {
    user_id: `u ${hostile}`,
    user_alias: hostile,
    max_budget: 1,
    models: ["mock", `${hostile}-model`],
  });
  const team = { team_id: "t ?#<b>", team_alias: `Team ${hostile}` };
  await fixture.post("/team/new", { ...team, max_budget: 3 });
  await fixture.post("/team/member_add", {
    team_id: team.team_id,
    member: { user_id: `u ${hostile}` },
  });
  await fixture.createKey({ user_id: `u ${hostile}`, team_id: team.team_id });
  const user = encodeURIComponent(`u ${hostile}`);
  const id = encodeURIComponent(team.team_id);
  for (const [name, path, heading] of [
    ["user", `users/user?id=${user}`, /onerror.* has spent \$ 0\.00/s],
    ["team", `teams/team?id=${id}`, /onerror.* has spent \$ 0\.00/s],
  ] as const) {
    await checkEveryScreen(browser, `${testbed.address}/${path}`, {
      name: `${name}-hostile`,
      heading,
    });
  }
  const { page } = await open(`/teams/member?id=${id}&user=${user}`);
  expect(await page.textContent("h1")).toContain(" in Team ");
  expect(await overflowOf(page)).toBe(0);
  expect(await findViolations(page)).toEqual([]);
  await page.goto(`${testbed.address}/users?search=onerror`);
  await page.locator("tbody a").click();
  await page.getByRole("link", { name: "Edit" }).click();
  expect(await page.getByLabel("Full name").inputValue()).toBe(hostile);
  expect(await page.getByLabel(`${hostile}-model`).isChecked()).toBe(true);
  await page.getByRole("button", { name: "Save changes" }).click();
  await expectMessage(page, "updated");
  await confirm(page, "Delete", hostile);
  await expectMessage(page, "deleted");
  await page.context().close();
});

test("members of a large team have several pages", async () => {
  await fixture.post("/team/new", {
    team_id: "crowd",
    members_with_roles: Array.from({ length: 120 }, (_, index) => ({
      user_id: `member-${index}`,
    })),
  });
  const { page } = await open("/teams/team?id=crowd");
  expect(await page.locator("tbody tr").count()).toBe(50);
  await page.getByRole("link", { name: /more of the 12\d members/ }).click();
  await page.getByRole("link", { name: /more of the 12\d members/ }).click();
  expect(await page.locator("tbody tr").count()).toBeLessThan(30);
  await page.context().close();
});
