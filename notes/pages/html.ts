/** Text that is HTML already. */
export interface Html {
  readonly html: string;
}

/** Puts values into HTML; everything that is not HTML itself is escaped. */
export function html(
  parts: TemplateStringsArray,
  ...values: readonly (Html | readonly Html[] | string | number)[]
): Html {
  const text = parts.map((part, index) =>
    index < values.length ? part + shown(values[index]!) : part,
  );
  return { html: text.join("") };
}

function shown(value: Html | readonly Html[] | string | number): string {
  if (typeof value === "object") {
    return "html" in value
      ? value.html
      : value.map((each) => each.html).join("");
  }
  return String(value)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
