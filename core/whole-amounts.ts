const SHORT_TEXT = /<(h1|b|small)\b[^>]*>[^]*?<\/\1>/g;
/** Not within a tag. With any number of digits, the error of a provider that is a note on a page could take half a minute. */
const AMOUNT =
  /(?:\$ -?\d(?:[\d,.]{0,32}\d)?|\d(?:[\d,.]{0,32}\d)? %|\d{1,2} [A-Z][a-z]{2}(?: \d{4})?, \d\d:\d\d)(?![^<>]*>)/g;

/** Keeps amounts and times such as "$ 41.55", "12 %" and "1 Dec, 00:00" in headings, emphasis and notes of a page on one line. */
export function keepAmountsWhole(markup: string): string {
  return markup.replace(SHORT_TEXT, (text) =>
    text.replace(AMOUNT, (amount) => `<span class="nowrap">${amount}</span>`),
  );
}
