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
