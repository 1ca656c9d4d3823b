import { expect, test } from "vitest";
import { silence } from "../../test/servers/media.ts";
import { secondsOf } from "./audio-length.ts";

function audio(bytes: Buffer, contentType: string, name = "") {
  return { bytes, contentType, name };
}

/** Frames of MPEG 1 layer 3 at 128 kbit/s and 44.1 kHz: 1,152 samples each. */
function mp3(frames: number): Buffer {
  const frame = Buffer.alloc(417);
  frame.writeUInt32BE(0xff_fb_90_00);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}

test.each([
  ["WAV", audio(silence(2.5), "audio/wav"), 2.5],
  ["MP3", audio(mp3(100), "audio/mpeg"), (100 * 1_152) / 44_100],
  ["a file of no type, by its content", audio(silence(1), ""), 1],
  [
    "a file of a wrong type, by its content",
    audio(silence(1), "application/octet-stream", "a.wav"),
    1,
  ],
  ["text", audio(Buffer.from("not audio at all"), "text/plain"), null],
  [
    "a header without its audio",
    audio(silence(1).subarray(0, 20), "audio/wav"),
    null,
  ],
  ["nothing", audio(Buffer.alloc(0), "audio/wav"), null],
])("the length of %s", async (_what, file, seconds) => {
  const measured = await secondsOf(file);
  if (seconds === null) {
    expect(measured).toBeNull();
  } else {
    expect(measured).toBeCloseTo(seconds, 1);
  }
});

test("files that are sent at once get their own lengths", async () => {
  const lengths = [1, 2, 3, 4];
  const files = lengths.map((seconds) => audio(silence(seconds), "audio/wav"));
  const broken = audio(Buffer.from("RIFF"), "audio/wav");
  expect(
    await Promise.all(
      [...files, broken, ...files].map((one) => secondsOf(one)),
    ),
  ).toEqual([...lengths, null, ...lengths]);
});
