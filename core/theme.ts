/** The colours of the pages: those of the device, or always the same. */
export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** Remembers the theme, so that the first byte of a page already has it. It is no secret: the page's script sets it, too. */
export const THEME_COOKIE = "hearth_theme";
const THEME_SECONDS = 365 * 86_400;

/** The header `set-cookie` that remembers a theme. */
export function themeCookie(theme: Theme): string {
  return `${THEME_COOKIE}=${theme}; Path=/; Max-Age=${THEME_SECONDS}; SameSite=Lax`;
}

export function themeOf(text: unknown): Theme {
  return THEMES.find((theme) => theme === text) ?? "system";
}
