/** A file of a multipart form, in memory. */
export class UploadedFile {
  readonly name: string;
  readonly contentType: string;
  readonly bytes: Buffer;
  /** Of audio; null until it is measured, and where it is not known. */
  seconds: number | null = null;

  constructor(name: string, contentType: string, bytes: Buffer) {
    this.name = name;
    this.contentType = contentType;
    this.bytes = bytes;
  }
}
