import type { OpenApiDocument, Operation } from "../http/openapi/document.ts";
import type { Schema } from "../http/openapi/json-schemas.ts";
import { DOCS_STYLE } from "./docs-style.ts";
import { framed, type Page } from "./frame.ts";
import { html, NOTHING, type Html } from "../../core/html.ts";
import { fieldList, fieldOf, typeOf } from "./schema-words.ts";

interface Listed extends Operation {
  readonly method: string;
  readonly path: string;
}

/** The OpenAPI document as a page: every route with its input and answer, without a script. */
export function docsPage(document: OpenApiDocument, version: string): Page {
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
    script: null,
    version,
    main: html`<main>
      <h1>API of this gateway</h1>
      <p class="soft">
        Send a key as <code>Authorization: Bearer sk-…</code>. Bodies are JSON
        unless stated otherwise. Error messages say what to do next. Fields of
        LiteLLM that are not supported are accepted while they are empty. For
        client generators: <a href="/openapi.json">openapi.json</a>.
      </p>
      <nav class="groups" aria-label="Groups">
        ${[...groups.keys()].map((name) => html`<a href="#${name}">${name}</a>`)}
        <a href="#shapes">shapes</a>
      </nav>
      ${[...groups].map(
        ([name, all]) =>
          html`<h2 id="${name}">${name}</h2>
            ${all.map(operationCard)}`,
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

function operationCard(operation: Listed): Html {
  const { method, path, summary, parameters = [], requestBody } = operation;
  const { "multipart/form-data": form, "application/json": json } =
    requestBody?.content ?? {};
  const body = (form ?? json)?.schema;
  const answer = answerOf(operation);
  return html`<details class="card">
    <summary>
      <span class="method">${method}</span> <code>${path}</code
      ><small>${summary}</small>
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

function answerOf({ responses }: Operation): Schema {
  const [success] = Object.entries(responses).flatMap(([status, response]) =>
    status === "default" ? [] : [response],
  );
  const [first] = Object.values(success?.content ?? {});
  return first?.schema ?? {};
}
