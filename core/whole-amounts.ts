const HEADING_OR_NOTE = /<(h1|small)\b[^>]*>[^]*?<\/\1>/g;
/** Not within a tag. */
const AMOUNT = /(?:\$ -?\d(?:[\d,.]*\d)?|\d(?:[\d,.]*\d)? %)(?![^<>]*>)/g;

/** Keeps amounts such as "$ 41.55" and "12 %" in the headings and notes of a page on one line. */
export function keepAmountsWhole(markup: string): string {
  return markup.replace(HEADING_OR_NOTE, (text) =>
    text.replace(AMOUNT, (amount) => `<span class="nowrap">${amount}</span>`),
  );
}
