import { html, type Html } from "../../core/html.ts";
import { shapeOf, signs, type Look } from "../../core/shapes.ts";
import { sizeWords } from "../../core/size.ts";
import { counted, grouped } from "../../core/words.ts";
import type { Incident } from "../latest-incidents.ts";
import type { StorageFailure } from "../refusal.ts";

/** One database as the page shows it; sizes in bytes. */
export interface DatabaseRow {
  readonly name: string;
  readonly documents: number;
  readonly deleted: number;
  readonly conflicted: number;
  readonly fileBytes: number;
  readonly activeBytes: number;
  readonly compacting: boolean;
}

export interface Overview {
  readonly rows: readonly DatabaseRow[];
  /** Databases that cannot be read. */
  readonly unreadable: readonly {
    readonly name: string;
    readonly reason: string;
  }[];
  /** Databases that could not be read or written within the last hour. */
  readonly failing: readonly Incident[];
}

/** The administration page: databases, their sizes, conflicts, and compaction. */
export function overviewPage(overview: Overview, stylesheet: string): string {
  const { rows } = overview;
  const [look, title, verdict] = verdictOf(overview);
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width,initial-scale=1" />
        <title>${signs[look]} ${title} · Hearth</title>
        <style>
          ${{ html: stylesheet + STYLE }}
        </style>
      </head>
      <body>
        <header class="top">
          <span class="brand">Hearth</span>
          <nav aria-label="Pages">
            <a aria-current="page" href="/_utils">Notes store</a>
          </nav>
        </header>
        <main>
          <section class="verdict">
            <span class="mark ${look}">${{ html: shapeOf(look) }}</span>
            <h1>${verdict}</h1>
            <p>${summary(rows)}</p>
          </section>
          ${look === "ok" ? html`` : attention(overview)}
          <h2>Databases</h2>
          ${vaults(rows).length === 0 ? emptyState : html``} ${table(rows)}
          <p class="soft">
            Compaction deletes the bodies of superseded revisions and frees
            their disk space. Notes, conflicts and deletions are kept.
          </p>
        </main>
        <footer>
          <span>Hearth notes store</span><span>CouchDB 3.5 API</span>
        </footer>
      </body>
    </html> `.html;
}

const STYLE = `
.compact {
  font: inherit;
  font-size: 0.875rem;
  padding: 0.25rem 0.75rem;
  color: var(--ember);
  background: none;
  border: 1px solid currentcolor;
  border-radius: 6px;
  cursor: pointer;
}
td form {
  margin: 0;
}
`;

const emptyState = html`<p>No vaults yet. Create one:</p>
  <pre>hearth notes add my-vault</pre>`;

function verdictOf({
  rows,
  unreadable,
  failing,
}: Overview): readonly [Look, string, string] {
  if (unreadable.length > 0) {
    return [
      "bad",
      "Unreadable",
      `${counted(unreadable.length, "database cannot", "databases cannot")} be read.`,
    ];
  }
  if (failing.length > 0) {
    return [
      "bad",
      "Failing",
      `${counted(new Set(failing.map(({ database }) => database)).size, "database")} could not be read or written.`,
    ];
  }
  const conflicted = rows.reduce((sum, row) => sum + row.conflicted, 0);
  return conflicted > 0
    ? [
        "warn",
        "Conflicts",
        `${counted(conflicted, "note has", "notes have")} conflicts.`,
      ]
    : ["ok", "Notes", "All is well."];
}

const reasons: Readonly<Record<StorageFailure, string>> = {
  damaged_document: "documents are damaged, which the log names",
  damaged_file: "its file is damaged",
  disk: "its disk fails or is read-only, or its file cannot be opened",
};

function attention({ rows, unreadable, failing }: Overview): Html {
  const damaged = unreadable.map(
    ({ name, reason }) =>
      html`<div class="row">
        <p><b>${name} cannot be read</b><br /><small>${reason}</small></p>
        <pre>hearth notes list</pre>
      </div>`,
  );
  const failed = failing.map(
    ({ database, at, reason }) =>
      html`<div class="row">
        <p>
          <b>${database} could not be read or written</b><br /><small
            >Last at ${at.slice(11, 16)} UTC:
            ${reasons[reason ?? "disk"]}.</small
          >
        </p>
        <pre>hearth doctor</pre>
      </div>`,
  );
  const conflicts = rows
    .filter((row) => row.conflicted > 0)
    .map(
      (row) =>
        html`<div class="row warned">
          <p>
            <b>${row.name}: ${counted(row.conflicted, "conflicted note")}</b
            ><br /><small
              >Merge the note on a device, or list the conflicts first:</small
            >
          </p>
          <pre>hearth notes conflicts ${row.name}</pre>
        </div>`,
    );
  return html`<h2>Needs attention</h2>
    <div class="card attention">${damaged}${failed}${conflicts}</div>`;
}

function table(rows: readonly DatabaseRow[]): Html {
  return html`<div
    class="card scroll"
    tabindex="0"
    role="region"
    aria-label="Databases"
  >
    <table>
      <thead>
        <tr>
          <th scope="col">Database</th>
          <th scope="col" class="num">Documents</th>
          <th scope="col" class="num">Deleted</th>
          <th scope="col" class="num">Conflicts</th>
          <th scope="col" class="num">On disk</th>
          <th scope="col" class="num">Reclaimable</th>
          <th scope="col">Compaction</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(tableRow)}
      </tbody>
    </table>
  </div>`;
}

function tableRow(row: DatabaseRow): Html {
  const reclaimable = Math.max(0, row.fileBytes - row.activeBytes);
  return html`<tr>
    <th scope="row">${row.name}</th>
    <td class="num">${grouped(row.documents)}</td>
    <td class="num">${grouped(row.deleted)}</td>
    <td class="num">${grouped(row.conflicted)}</td>
    <td class="num">${sizeWords(row.fileBytes)}</td>
    <td class="num">${sizeWords(reclaimable)}</td>
    <td>
      ${
        row.compacting
          ? html`<span class="state rest">‖ running</span>`
          : html`<form method="post" action="/_utils/compact">
              <input type="hidden" name="database" value="${row.name}" /><button
                class="compact"
                aria-label="Compact ${row.name}"
              >
                Compact
              </button>
            </form>`
      }
    </td>
  </tr>`;
}

function summary(rows: readonly DatabaseRow[]): string {
  const documents = rows.reduce((sum, row) => sum + row.documents, 0);
  const bytes = rows.reduce((sum, row) => sum + row.fileBytes, 0);
  return `${counted(rows.length, "database")} · ${counted(documents, "document")} · ${sizeWords(bytes)} on disk`;
}

function vaults(rows: readonly DatabaseRow[]): readonly DatabaseRow[] {
  return rows.filter((row) => !row.name.startsWith("_"));
}
