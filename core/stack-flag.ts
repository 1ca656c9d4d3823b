/** The stack of a command without `--stack`. */
export const DEFAULT_STACK = "home";

/** A text for the operator of a stack: its commands change that stack, not the default one. */
export function withStackFlag(text: string, stack: string): string {
  return stack === DEFAULT_STACK
    ? text
    : text.replaceAll(
        /(npm run deploy --|npx pulumi (?:config (?:set|rm|get)|stack output)) (?=[a-z]|--(?!stack))/g,
        `$&--stack ${stack} `,
      );
}
