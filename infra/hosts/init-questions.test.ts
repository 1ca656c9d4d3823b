import { expect, test } from "vitest";
import {
  answersOf,
  offerFor,
  QUESTIONS,
  settingsOf,
  withAnswers,
} from "./init-questions.ts";

const hosts = (text: string | undefined): unknown => JSON.parse(text ?? "");

test("answers become settings; lists are split, empty answers are omitted", () => {
  const { hosts: created, ...rest } = settingsOf({
    "docker-a": "ssh://root@192.168.1.10",
    "address-a": "10.8.0.1",
    "publish-a": "192.168.1.10, 10.8.0.1,",
    "docker-b": "ssh://root@192.168.1.11",
    "address-b": "10.8.0.2",
    "publish-b": "192.168.1.11",
    "runner-a": "http://192.168.1.10:11434",
    "runner-b": "",
  });
  expect(hosts(created)).toEqual({
    a: {
      docker: "ssh://root@192.168.1.10",
      address: "10.8.0.1",
      publish: ["192.168.1.10", "10.8.0.1"],
    },
    b: {
      docker: "ssh://root@192.168.1.11",
      address: "10.8.0.2",
      publish: ["192.168.1.11"],
    },
  });
  expect(rest).toEqual({ localRunnerA: "http://192.168.1.10:11434" });
});

test("the address is offered from the engine's address", () => {
  const address = QUESTIONS.find(({ flag }) => flag === "address-b");
  const offered = (docker: string) => address?.initial({ "docker-b": docker });
  expect(offered("ssh://root@192.168.1.11:2222")).toBe("192.168.1.11");
  expect(offered("ssh://root@[fd00::11]")).toBe("");
  expect(offered("unix:///var/run/docker.sock")).toBe("");
});

test("answers replace settings, others are kept; a new host is published at its address", () => {
  const settings = withAnswers(
    {
      hosts: JSON.stringify({
        a: {
          docker: "ssh://root@a",
          address: "10.8.0.1",
          publish: ["10.1.1.1"],
        },
      }),
      localRunnerA: "http://10.8.0.1:1234",
    },
    { "docker-a": "tcp://10.8.0.1:2375", "address-b": "10.8.0.2" },
  );
  expect(hosts(settings["hosts"])).toEqual({
    a: {
      docker: "tcp://10.8.0.1:2375",
      address: "10.8.0.1",
      publish: ["10.1.1.1"],
    },
    b: { address: "10.8.0.2", publish: ["10.8.0.2"] },
  });
  expect(settings["localRunnerA"]).toBe("http://10.8.0.1:1234");
});

const answered = {
  "docker-a": "ssh://root@192.168.1.10",
  "address-a": "192.168.1.10",
  "publish-a": "192.168.1.10, 10.8.0.1",
  "docker-b": "ssh://root@192.168.1.11",
  "address-b": "192.168.1.11",
  "publish-b": "192.168.1.11",
  "runner-a": "http://192.168.1.10:11434",
};

test("answers can be derived from their settings", () => {
  expect(answersOf(settingsOf(answered))).toEqual(answered);
  expect(answersOf({})).toEqual({});
});

test("known answers are the defaults; those derived from another answer follow the new one", () => {
  const answers: Record<string, string> = {};
  for (const question of QUESTIONS) {
    answers[question.flag] =
      question.flag === "docker-b"
        ? "ssh://root@192.168.1.12"
        : offerFor(question, answers, answered);
  }
  expect(answers).toEqual({
    ...answered,
    "docker-b": "ssh://root@192.168.1.12",
    "address-b": "192.168.1.12",
    "publish-b": "192.168.1.12",
    "runner-b": "",
  });
});

test("an emptied answer removes its setting", () => {
  expect(
    withAnswers(settingsOf(answered), { "runner-a": "" }),
  ).not.toHaveProperty("localRunnerA");
});
