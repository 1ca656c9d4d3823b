import { setFlagsFromString } from "node:v8";

// The young generation grows to 32 MB where work comes in bursts, and never shrinks below what it was: a supervisor that mostly
// waits would keep 15 MB for nothing. It must be set before anything else is evaluated: import this first.
setFlagsFromString("--semi-space-growth-factor=1");
