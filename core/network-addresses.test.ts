import { expect, test } from "vitest";
import {
  isPrivateAddress,
  isPrivateHost,
  isPublicAddress,
} from "./network-addresses.ts";

test.each([
  "127.0.0.1",
  "127.9.9.9",
  "0.0.0.0",
  "10.1.2.3",
  "100.100.1.1",
  "169.254.169.254",
  "172.31.0.1",
  "192.168.1.1",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::ffff:127.0.0.1",
  "::ffff:a9fe:a9fe",
  "::127.0.0.1",
  "fe80::1",
  "fd00:ec2::254",
  "ff02::1",
  "2002:7f00:1::",
  "2001:0:1::1",
  "64:ff9b::10.0.0.1",
])("%s is not a public address", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each([
  "1.1.1.1",
  "100.128.0.1",
  "172.32.0.1",
  "223.255.255.255",
  "2606:4700:4700::1111",
  "::ffff:1.1.1.1",
  "64:ff9b::1.1.1.1",
])("%s is a public address", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test.each([
  "127.0.0.1",
  "::ffff:192.168.1.2",
  "::ffff:c0a8:102",
  "100.64.0.1",
  "fd7a:115c:a1e0::1",
  "fe80::1%eth0",
])("%s is a private address", (address) => {
  expect(isPrivateAddress(address)).toBe(true);
  expect(isPublicAddress(address)).toBe(false);
});

test.each(["0.0.0.0", "::", "8.8.8.8", "100.63.255.255", "2001:db8::1"])(
  "%s is not a private address",
  (address) => {
    expect(isPrivateAddress(address)).toBe(false);
  },
);

test.each([
  "http://localhost:11434",
  "http://localhost.:11434",
  "http://metadata.google.internal.",
  "http://runner-a:8000",
  "http://runner-a.",
  "http://GPU.LAN",
  "http://2130706433",
  "http://0x7f.1",
  "http://0177.0.0.1",
  "http://127.1",
  "http://[::ffff:10.0.0.5]",
])("%s has a private host", (url) => {
  expect(isPrivateHost(new URL(url).hostname)).toBe(true);
});

test.each(["https://api.openai.com", "https://localhost.example.com."])(
  "%s has a public host",
  (url) => {
    expect(isPrivateHost(new URL(url).hostname)).toBe(false);
  },
);
