// Plain JavaScript: any Node can read it and say what is missing. `pulumi up` starts here.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(
    `hearth: this program needs Node 22.18 or newer, this is ${process.version}: run it as \`npx pulumi up\`, which finds the project's own Node.\n`,
  );
  process.exit(1);
}
const { stackProgram } = await import("./stack-program.ts");

// eslint-disable-next-line no-restricted-exports -- Pulumi calls the default export of its entry point.
export default () => stackProgram(true);
