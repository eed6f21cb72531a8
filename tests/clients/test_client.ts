// Holds the recorded conversations, and a chat, with the generated client.
// Usage: node test_client.js STEPS SOCKET PROJECT PROGRAM ARGUMENT…

import { ChatProgress, Client, ContextureError } from "./contexture_client";

declare const require: any;
declare const process: any;
const { spawn } = require("child_process");
const { connect } = require("net");
const assert = require("assert");
const [steps, socket, project, program, ...args] = process.argv.slice(2);

function camel(name: string): string {
  return name.replace(/-(.)/g, (_, first: string) => first.toUpperCase());
}

/** Makes a call by its method of the client, or as it is if the client has none like it. */
async function said(client: Client, step: any): Promise<unknown> {
  try {
    const result = step.typed
      ? await (client as any)[camel(step.method)](step.params).result
      : await client.send(step.method, step.params).result;
    return { result };
  } catch (error) {
    if (!(error instanceof ContextureError)) throw error;
    return { error: { code: error.code, message: error.message, data: error.data } };
  }
}

async function replay(name: string, conversation: any[]): Promise<void> {
  const server = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const client = new Client(server.stdout, server.stdin);
  for (const step of conversation) {
    assert.deepStrictEqual(await said(client, step), step.answer, `${name} ${step.method}`);
  }
  client.close();
}

async function chat(): Promise<void> {
  const peer = connect(socket);
  const client = new Client(peer, peer);
  const changed: string[] = [];
  client.onSessionChanged((params) => changed.push(params.session));
  await client.subscribe({ topics: ["session-changed"] }).result;
  await client.openSession({ name: "t", manager: "t", project }).result;
  const asked: unknown[] = [];
  let pieces = "";
  const progress = (event: ChatProgress) => {
    if (event.kind === "approval") {
      asked.push(event.tool);
      client.approve({ approval: event.approval!, decision: "once" });
    } else if (event.kind === "text") {
      pieces += event.text;
    }
  };
  const reply = await client.chat({ content: "use tools", tools: true }, progress).result;
  assert("question" in reply, "it is a reply and no preview");
  if (!("question" in reply)) return;
  assert.deepStrictEqual([asked, pieces, reply.content], [["add_text"], "fine", "fine"]);
  assert.deepStrictEqual(reply.tool_calls.map((call) => call.outcome), ["done"]);
  assert.strictEqual(changed[changed.length - 1], "t");

  const hanging = client.chat({ content: "hang" }, (event) => {
    if (event.kind === "text") client.cancel({ id: hanging.id });
  });
  const error: ContextureError = await hanging.result.then(
    () => assert.fail("it was cancelled"),
    (error: ContextureError) => error
  );
  assert.deepStrictEqual([error.kind, error.data.question], ["cancelled", "msg-5"]);
  const first = await client.addItem({ content: "y", request_key: "once more" }).result;
  client.close();

  const next = connect(socket);
  const again = new Client(next, next);
  const repeated = await again.addItem({ content: "y", request_key: "once more" }).result;
  assert.deepStrictEqual(repeated, first);
  const log = await again.getMessages({ session: "t" }).result;
  const messages = Array.isArray(log) ? log : log.items ?? [];
  const roles = messages.map((message) => message.role).join(" ");
  assert.strictEqual(roles, "user assistant tool assistant user assistant");
  again.close();
}

async function main(): Promise<void> {
  const conversations = JSON.parse(require("fs").readFileSync(steps, "utf8"));
  for (const name of Object.keys(conversations)) await replay(name, conversations[name]);
  await chat();
  console.log("all is as it should be");
}

declare const console: { log(text: string): void };
main().then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  }
);
