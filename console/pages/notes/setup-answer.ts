import type { SetupAnswer } from "../../../supervisor/vaults/provisioning.ts";

/** The Setup URI and its QR code, embedded in the page. */
export async function viewSetup(answer: SetupAnswer, title: string) {
  const { default: qrcode } = await import("qrcode");
  return {
    ...answer,
    title,
    // The page has a field for the address.
    advice: answer.advice.map((each) => each.replace(" with --url", "")),
    path: `/notes/${encodeURIComponent(answer.vault)}`,
    // A camera needs a few pixels per module, also from a screen of low density.
    qr: await qrcode.toDataURL(answer.setupUri, {
      errorCorrectionLevel: "L",
      scale: 6,
      margin: 4,
    }),
  };
}
