import { shellQuoted } from "../../core/shell.ts";
import { html, type Html } from "../../core/html.ts";

/** How each client reaches this gateway; `docs/clients.md` has more. None of them contains the key. */
export function snippets(address: string, model: string): Html {
  const quoted = JSON.stringify(model);
  const all: readonly (readonly [string, string])[] = [
    [
      "curl",
      `export HEARTH_KEY=…
curl ${address}/v1/chat/completions \\
  -H "Authorization: Bearer $HEARTH_KEY" \\
  -d ${shellQuoted(JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }))}`,
    ],
    [
      "Python (openai)",
      `import os
from openai import OpenAI

client = OpenAI(base_url="${address}/v1", api_key=os.environ["HEARTH_KEY"])
answer = client.chat.completions.create(
    model=${quoted},
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
    ],
    [
      "JavaScript (openai)",
      `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${address}/v1", apiKey: process.env.HEARTH_KEY });
const answer = await client.chat.completions.create({
  model: ${quoted},
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0].message.content);`,
    ],
    [
      "Claude Code",
      `export ANTHROPIC_BASE_URL=${address}
export ANTHROPIC_AUTH_TOKEN="$HEARTH_KEY"
export ANTHROPIC_MODEL=${quoted}
claude`,
    ],
    [
      "Other programs",
      `Address (OpenAI's API):    ${address}/v1
Address (Anthropic's API): ${address}
Key:                       yours
Model:                     ${model}`,
    ],
  ];
  return html`${all.map(
    ([name, code], at) =>
      html`<details ${at === 0 ? OPEN : CLOSED}>
        <summary>${name}</summary>
        <pre
          tabindex="0"
          role="region"
          aria-label="${name}"
        ><code>${code}</code></pre>
      </details>`,
  )}`;
}

const OPEN: Html = { html: "open" };
const CLOSED: Html = { html: "" };
