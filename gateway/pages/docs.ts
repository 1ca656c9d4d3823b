import type { OpenApiDocument, Operation } from "../http/openapi/document.ts";
import type { Schema } from "../http/openapi/json-schemas.ts";
import { DOCS_SCRIPT } from "./docs-script.ts";
import { DOCS_STYLE } from "./docs-style.ts";
import { exampleBody } from "./example-body.ts";
import { framed, type Page } from "./frame.ts";
import { html, NOTHING, type Html, withCode } from "../../core/html.ts";
import type { Theme } from "../../core/theme.ts";
import { fieldList, fieldOf, typeOf } from "./schema-words.ts";
import { snippets } from "./snippets.ts";

interface Listed extends Operation {
  readonly method: string;
  readonly path: string;
}

interface DocsFacts {
  readonly document: OpenApiDocument;
  readonly version: string;
}

interface DocsView extends DocsFacts {
  /** The reader's address of this gateway. */
  readonly address: string;
  /** An alias for examples. */
  readonly model: string;
}

/** In the page that all readers share; each reader's address replaces it, without being escaped. */
const READERS_ADDRESS = "http://address-of-the-reader";

/**
 * The OpenAPI document as a page, for a reader's address and a model for examples. It is rendered and encoded once for all readers:
 * that takes 50 ms, and strangers could keep the gateway busy with it.
 */
export class DocsPages {
  readonly #facts: DocsFacts;
  /** What is between the addresses. */
  readonly #parts = new Map<Theme, readonly Buffer[]>();
  /** The last one that was sent: nearly all readers use the same address and theme. */
  #sent: { readonly as: string; readonly bytes: Buffer } | undefined;
  #page: Page | undefined;
  #model: string | undefined;

  constructor(facts: DocsFacts) {
    this.#facts = facts;
  }

  pageFor(address: string, model: string): Page {
    if (this.#page === undefined || this.#model !== model) {
      this.#model = model;
      this.#page = docsPage({
        ...this.#facts,
        address: READERS_ADDRESS,
        model,
      });
      this.#parts.clear();
      this.#sent = undefined;
    }
    const page = this.#page;
    return {
      ...page,
      html: (theme) => {
        const as = `${theme} ${address}`;
        if (this.#sent?.as !== as) {
          this.#sent = { as, bytes: this.#bytesOf(page, theme, address) };
        }
        return this.#sent.bytes;
      },
    };
  }

  #bytesOf(page: Page, theme: Theme, address: string): Buffer {
    const bytes = Buffer.from(address);
    return Buffer.concat(
      this.#partsOf(page, theme).flatMap((part, at) =>
        at === 0 ? [part] : [bytes, part],
      ),
    );
  }

  #partsOf(page: Page, theme: Theme): readonly Buffer[] {
    const known = this.#parts.get(theme);
    if (known !== undefined) {
      return known;
    }
    const parts = String(page.html(theme))
      .split(READERS_ADDRESS)
      .map((part) => Buffer.from(part));
    this.#parts.set(theme, parts);
    return parts;
  }
}

/** Every route with its input and answer. A script adds search, examples and a form for each. */
function docsPage(view: DocsView): Page {
  const { document, version, address, model } = view;
  const operations: readonly Listed[] = Object.entries(document.paths).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        ...operation,
        method: method.toUpperCase(),
        path,
      })),
  );
  const groups = Map.groupBy(operations, ({ tags: [tag = ""] }) => tag);
  return framed({
    current: "/docs",
    title: "API of this gateway",
    look: "none",
    style: DOCS_STYLE,
    script: DOCS_SCRIPT,
    version,
    main: html`<main
      id="main"
      tabindex="-1"
      data-address="${address}"
      data-model="${model}"
    >
      ${introduction(view)}
      <nav class="groups" aria-label="Groups">
        ${[...groups.keys()].map((name) => html`<a href="#${name}">${name}</a>`)}
        <a href="#shapes">shapes</a>
      </nav>
      ${[...groups].map(
        ([name, all]) =>
          html`<section data-group="${name}">
            <h2 id="${name}">${name}</h2>
            ${all.map((operation) => operationCard(operation, model))}
          </section>`,
      )}
      <h2 id="shapes">Shapes</h2>
      ${Object.entries(document.components.schemas).map(
        ([name, schema]) =>
          html`<details class="card" id="shape-${name}">
            <summary>${name}</summary>
            <div>${fieldList(schema, "answer")}</div>
          </details>`,
      )}
    </main>`,
  });
}

function introduction({ address, model }: DocsView): Html {
  return html`<h1>API of this gateway</h1>
    <p class="soft">
      Send a key as <code>Authorization: Bearer sk-…</code>. Bodies are JSON
      unless stated otherwise. Error messages say what to do next. Fields of
      LiteLLM that are not supported are accepted while they are empty. For
      client generators: <a href="/openapi.json">openapi.json</a>.
    </p>
    <details>
      <summary>First call: curl, Python, JavaScript, Claude Code</summary>
      ${snippets(address, model)}
    </details>
    <div class="tools" id="docs-tools" hidden>
      <label class="field"
        >Search operations
        <input
          id="docs-search"
          type="search"
          autocomplete="off"
          placeholder="chat, /key, budget …"
      /></label>
      <label class="field"
        >Key, to try them
        <input
          id="docs-key"
          type="password"
          autocomplete="off"
          spellcheck="false"
          placeholder="sk-…"
          aria-describedby="docs-key-note"
      /></label>
      <p class="soft" id="docs-key-note">
        The key stays in the memory of this page until it is closed or reloaded,
        and is sent only to this gateway.
      </p>
      <p id="docs-found" role="status"></p>
    </div>`;
}

function operationCard(operation: Listed, model: string): Html {
  const { method, path, summary, parameters = [], requestBody } = operation;
  const { "multipart/form-data": form, "application/json": json } =
    requestBody?.content ?? {};
  const body = (form ?? json)?.schema;
  const answer = answerOf(operation);
  return html`<details
    class="card"
    id="${operation.operationId}"
    ${dataOf(operation, model)}
  >
    <summary>
      <span class="method">${method}</span> <code>${path}</code
      ><small>${withCode(summary)}</small>
    </summary>
    <div>
      ${
        parameters.length === 0
          ? NOTHING
          : html`<h3>Parameters</h3>
              <dl class="fields">
                ${parameters.map(({ name, schema, required }) =>
                  fieldOf(name, schema, required),
                )}
              </dl>`
      }
      ${
        body === undefined
          ? NOTHING
          : html`<h3>
                ${form === undefined ? "Body" : "Form (multipart/form-data)"}
              </h3>
              ${fieldList(body, "body")}`
      }
      <h3>Answer</h3>
      ${
        answer["properties"] === undefined
          ? html`<p class="soft">${typeOf(answer)}</p>`
          : fieldList(answer, "answer")
      }
    </div>
  </details>`;
}

/** What the script needs for an example and a form. In lists, `*` marks what is required and `@` a file. */
function dataOf(operation: Listed, model: string): Html {
  const { parameters = [], requestBody, security } = operation;
  const { "multipart/form-data": form, "application/json": json } =
    requestBody?.content ?? {};
  const query = parameters
    .filter((each) => each.in === "query")
    .map(({ name, required }) => (required ? `${name}*` : name));
  const reads = readsOf(operation);
  return html`${security === undefined ? NOTHING : html` data-open`}${
    reads === "json" ? NOTHING : html` data-reads="${reads}"`
  }${query.length === 0 ? NOTHING : html` data-query="${query.join(" ")}"`}${
    json === undefined
      ? NOTHING
      : html` data-body="${JSON.stringify(exampleBody(json.schema, model))}"`
  }${
    form === undefined ? NOTHING : html` data-form="${formFields(form.schema)}"`
  }`;
}

function formFields(schema: Schema): string {
  const required = (schema["required"] ?? []) as readonly string[];
  const properties = (schema["properties"] ?? {}) as Readonly<
    Record<string, Schema>
  >;
  return Object.entries(properties)
    .map(
      ([name, field]) =>
        `${name}${required.includes(name) ? "*" : ""}${isFile(field) ? "@" : ""}`,
    )
    .join(" ");
}

function isFile(field: Schema): boolean {
  const options = (field["anyOf"] ?? [field]) as readonly Schema[];
  return options.some(
    ({ format, items }) =>
      format === "binary" ||
      (items as Schema | undefined)?.["format"] === "binary",
  );
}

function readsOf(operation: Listed): "json" | "text" | "file" {
  const [type = "application/json"] = Object.keys(contentOf(operation));
  return type.endsWith("json")
    ? "json"
    : type.startsWith("text")
      ? "text"
      : "file";
}

function answerOf(operation: Listed): Schema {
  const [first] = Object.values(contentOf(operation));
  return first?.schema ?? {};
}

/** What an operation answers with success, by content type. */
function contentOf({ responses }: Operation) {
  const [success] = Object.entries(responses).flatMap(([status, response]) =>
    status === "default" ? [] : [response],
  );
  return success?.content ?? {};
}
