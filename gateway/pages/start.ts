import { framed, mark, type Page } from "./frame.ts";
import { html, NOTHING } from "../../core/html.ts";
import { isLoopback } from "./own-address.ts";
import { snippets } from "./snippets.ts";

interface StartFacts {
  readonly version: string;
  /** The reader's address of this gateway. */
  readonly address: string;
  /** An alias for examples. */
  readonly model: string;
  /** Whether the database is available. */
  readonly ready: boolean;
  /** Address of the operator's pages, if known. */
  readonly console: string | undefined;
}

/** What this gateway is and where to go; the JSON of `/`. */
interface StartView {
  readonly name: "Hearth gateway";
  readonly version: string;
  readonly ready: boolean;
  /** For clients of OpenAI's API. */
  readonly base_url: string;
  /** For clients of Anthropic's API. */
  readonly anthropic_base_url: string;
  readonly docs: string;
  readonly openapi: string;
  readonly usage: string;
  readonly models: string;
  readonly health: string;
  readonly console: string | null;
  readonly example_model: string;
}

export function startView(facts: StartFacts): StartView {
  const { version, address, model, ready, console } = facts;
  return {
    name: "Hearth gateway",
    version,
    ready,
    base_url: `${address}/v1`,
    anthropic_base_url: address,
    docs: `${address}/docs`,
    openapi: `${address}/openapi.json`,
    usage: `${address}/me`,
    models: `${address}/v1/models`,
    health: `${address}/health/readiness`,
    console: consoleFor(address, console),
    example_model: model,
  };
}

/** A loopback address is of use only to a reader on the same machine. */
function consoleFor(
  address: string,
  console: string | undefined,
): string | null {
  return console !== undefined &&
    /^https?:/.test(console) &&
    URL.canParse(console) &&
    (!isLoopback(console) || isLoopback(address))
    ? console
    : null;
}

/** The same as a page. */
export function startPage(view: StartView): Page {
  const { version, ready, console } = view;
  const look = ready ? "ok" : "warn";
  return framed({
    current: "/",
    title: ready ? "Hearth gateway" : "Hearth gateway: database unavailable",
    look,
    style: "",
    script: null,
    version,
    main: html`<main id="main" tabindex="-1">
      <section class="verdict">
        ${mark(look)}
        <h1>This is a Hearth gateway.</h1>
        <p>
          One address for all models, with the APIs of OpenAI and Anthropic.
          Every call requires a virtual key, which has its own budget and
          limits.
          ${
            ready
              ? NOTHING
              : html`The database is unavailable: known keys work, others get
                status 503.`
          }
        </p>
      </section>
      <h2>Where to go</h2>
      <dl class="figures">
        <div>
          <dt><a href="/docs">API</a></dt>
          <dd class="plain">
            All routes, with examples and a form to try them
          </dd>
        </div>
        <div>
          <dt><a href="/me">My usage</a></dt>
          <dd class="plain">What your key has spent, and what is left</dd>
        </div>
        ${
          console === null
            ? NOTHING
            : html`<div>
                <dt><a href="${console}">Console</a></dt>
                <dd class="plain">For the operator: keys, spend, status</dd>
              </div>`
        }
        <div>
          <dt><a href="/openapi.json">openapi.json</a></dt>
          <dd class="plain">For generators of clients</dd>
        </div>
      </dl>
      <h2>First call</h2>
      <p class="soft">
        <code>GET /v1/models</code> lists the models that your key may call. No
        key yet? The operator runs <code>npx hearth keys new</code>.
      </p>
      ${snippets(view.anthropic_base_url, view.example_model)}
    </main>`,
  });
}
