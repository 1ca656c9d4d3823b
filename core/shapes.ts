/** The appearance of a state: its colour in the stylesheet, with a shape and a sign, since colour must not be the only signal. */
export type Look = "ok" | "warn" | "bad" | "rest" | "none";

/** For text, such as titles. */
export const signs: Readonly<Record<Look, string>> = {
  ok: "●",
  warn: "▲",
  bad: "✕",
  rest: "‖",
  none: "○",
};

const DRAWINGS: Readonly<Record<Look, string>> = {
  ok: '<circle cx="8" cy="8" r="7"/>',
  warn: '<path d="M8 1 15.5 15H.5z"/>',
  bad: '<path d="M3 1 8 6l5-5 2 2-5 5 5 5-2 2-5-5-5 5-2-2 5-5-5-5z"/>',
  rest: '<path d="M3 2h4v12H3zM9 2h4v12H9z"/>',
  none: '<path d="M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1zm0 2.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6z"/>',
};

/** Markup of the shape, in the current text colour. */
export function shapeOf(look: Look): string {
  return `<svg viewBox="0 0 16 16" fill="currentColor" aria-hidden="true">${DRAWINGS[look]}</svg>`;
}

const ICON_COLOURS: Readonly<Record<Look, string>> = {
  ok: "#1a7f43",
  warn: "#a35a00",
  bad: "#bb1f1f",
  rest: "#2f5fb3",
  none: "#6b6258",
};

/** The icon of the browser tab as a data URL. */
export function iconOf(look: Look): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="${ICON_COLOURS[look]}">${DRAWINGS[look]}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
