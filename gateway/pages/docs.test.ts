import { expect, test } from "vitest";
import { openApiDocument } from "../http/openapi/document.ts";
import { DocsPages } from "./docs.ts";

test("all readers share one rendered page, each with the reader's own address", () => {
  const { paths, ...rest } = openApiDocument("0.0.0");
  let rendered = 0;
  const document = {
    ...rest,
    get paths() {
      rendered += 1;
      return paths;
    },
  };
  const pages = new DocsPages({ document, version: "0.0.0" });
  const addresses = ["http://one.example:4000", "https://two.example"];
  const texts = addresses.flatMap((address) =>
    (["system", "dark"] as const).map((theme) =>
      String(pages.pageFor(address, "MODEL").html(theme)),
    ),
  );
  expect(rendered).toBe(1);
  expect(texts.map((text) => /data-address="([^"]*)"/.exec(text)?.[1])).toEqual(
    [addresses[0], addresses[0], addresses[1], addresses[1]],
  );
  expect(
    texts.map((text) => text.includes('<html lang="en" data-theme="dark"')),
  ).toEqual([false, true, false, true]);
  expect(texts.join("")).not.toContain("address-of-the-reader");
  for (const [at, address] of addresses.entries()) {
    expect(texts[2 * at]).toContain(`curl ${address}/v1/chat/completions`);
  }
});

test("the same page is sent again as the same bytes, which are compressed once", () => {
  const document = openApiDocument("0.0.0");
  const pages = new DocsPages({ document, version: "0.0.0" });
  const bytes = () => pages.pageFor("http://one.example", "MODEL").html("dark");
  expect(bytes()).toBe(bytes());
});

test("the page follows the model for examples", () => {
  const document = openApiDocument("0.0.0");
  const pages = new DocsPages({ document, version: "0.0.0" });
  const models = ["first-model", "second-model"].map((model) => {
    const { html } = pages.pageFor("http://one.example", model);
    return /data-model="([^"]*)"/.exec(String(html("system")))?.[1];
  });
  expect(models).toEqual(["first-model", "second-model"]);
});
