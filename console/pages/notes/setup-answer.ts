import type { SetupAnswer } from "../../../supervisor/vaults/provisioning.ts";

/** What a device needs, with the QR code as a picture in the page itself. */
export async function viewSetup(answer: SetupAnswer, title: string) {
  const { default: qrcode } = await import("qrcode");
  return {
    ...answer,
    title,
    // The page has a field for it.
    advice: answer.advice.map((each) => each.replace(" with --url", "")),
    path: `/notes/${encodeURIComponent(answer.vault)}`,
    qr: await qrcode.toDataURL(answer.setupUri, {
      errorCorrectionLevel: "L",
      scale: 3,
      margin: 4,
    }),
  };
}
