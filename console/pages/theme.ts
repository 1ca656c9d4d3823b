/** The colours of the pages: those of the device, or always the same. */
export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** Remembers the theme, so that the first byte of a page already has it. It is no secret: the page's script sets it, too. */
export const THEME_COOKIE = "hearth_theme";
export const THEME_SECONDS = 365 * 86_400;

export function themeOf(text: unknown): Theme {
  return THEMES.find((theme) => theme === text) ?? "system";
}
