import { html } from "../../core/html.ts";
import { framed, mark, type Page } from "./frame.ts";

/** What a browser gets where there is no page; `message` is that of the error for programs. */
export function noRoutePage(message: string, version: string): Page {
  return framed({
    current: "/",
    title: "Page not found",
    look: "warn",
    style: "",
    script: null,
    version,
    main: html`<main id="main" tabindex="-1">
      <section class="verdict">
        ${mark("warn")}
        <h1>Page not found.</h1>
        <p>${message}</p>
      </section>
      <p>
        Open <a href="/me">My usage</a> for what your key has spent, or
        <a href="/docs">API</a> for all routes.
      </p>
    </main>`,
  });
}
