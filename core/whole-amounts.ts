const HEADING = /<h1\b[^>]*>[^]*?<\/h1>/g;
const AMOUNT = /\$ -?\d(?:[\d,.]*\d)?|\d(?:[\d,.]*\d)? %/g;

/** Keeps amounts such as "$ 41.55" and "12 %" in the headings of a page on one line. */
export function keepAmountsWhole(markup: string): string {
  return markup.replace(HEADING, (heading) =>
    heading.replace(
      AMOUNT,
      (amount) => `<span class="nowrap">${amount}</span>`,
    ),
  );
}
