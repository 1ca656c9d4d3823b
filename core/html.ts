/** Text that is HTML already. */
export interface Html {
  readonly html: string;
}

type Shown = Html | readonly Html[] | string | number;

/** Puts values into HTML; everything that is not HTML itself is escaped. */
export function html(
  parts: TemplateStringsArray,
  ...values: readonly Shown[]
): Html {
  const text = parts.map((indented, at) => {
    // The sources' indentation would be a third of a page.
    const part = indented.replace(/\n\s+/g, "\n");
    const value = values[at];
    return value === undefined ? part : part + shown(value);
  });
  return { html: text.join("") };
}

/** A sentence whose parts between backticks are code; `typed` gives a command as it is typed here. */
export function withCode(
  sentence: string,
  typed: (code: string) => string = (code) => code,
): Html {
  // Every second part was between backticks.
  const marked = sentence
    .split(/`([^`]+)`/)
    .map((part, at) =>
      at % 2 === 1 ? html`<code>${typed(part)}</code>` : html`${part}`,
    );
  return html`${marked}`;
}

export const NOTHING: Html = { html: "" };

function shown(value: Shown): string {
  if (typeof value === "object") {
    return "html" in value
      ? value.html
      : value.map((each) => each.html).join("");
  }
  return String(value)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
