// The chat page: sends the conversation to /v1/chat/completions and shows the answer as it comes.
// Text of the model only ever becomes text nodes; nothing here parses it as HTML.

const $ = (id) => document.getElementById(id);
const element = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};

const suggestions = ["Where is my order?", "I want to return a pair of shoes.", "你们支持哪些付款方式？"];
const saved = (() => {
  try {
    return JSON.parse(localStorage.getItem("troupe-settings")) || {};
  } catch {
    return {};
  }
})();

let conversation = []; // {role, content}; what the server is sent
let running = null;    // {controller, view} of the answer being generated

// ---- one answer on the page ----

class AnswerView {
  constructor() {
    this.text = "";
    this.reasoning = "";
    this.calls = [];
    this.deltas = 0;
    this.started = performance.now();
    this.first = 0;
    this.last = 0;
    this.usage = null;
    this.root = element("article", "message assistant");
    this.thinking = element("details", "thinking");
    this.thinkingTitle = element("summary", "", "Thinking …");
    this.thinkingText = element("div");
    this.thinking.append(this.thinkingTitle, this.thinkingText);
    this.thinking.hidden = true;
    this.body = element("div", "text working");
    this.foot = element("div", "foot");
    this.root.append(this.thinking, this.body, this.foot);
    this.scheduled = false;
  }

  add(delta) {
    const now = performance.now();
    if (delta.reasoning_content) this.reasoning += delta.reasoning_content;
    if (delta.content) this.text += delta.content;
    for (const call of delta.tool_calls || []) {
      const known = (this.calls[call.index] ||= { name: "", arguments: "" });
      known.name += call.function?.name || "";
      known.arguments += call.function?.arguments || "";
    }
    if (delta.reasoning_content || delta.content || delta.tool_calls) {
      this.first ||= now;
      this.last = now;
      ++this.deltas;
      this.schedule();
    }
  }

  // At most once a frame, however many tokens come.
  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.render();
    });
  }

  render() {
    const follow = nearEnd();
    if (this.reasoning) {
      this.thinking.hidden = false;
      this.thinkingText.textContent = this.reasoning;
      this.thinkingTitle.textContent = this.text || !this.body.classList.contains("working") ? "Thought" : "Thinking …";
      if (!this.touched) this.thinking.open = !this.text;
    }
    const calls = this.calls.map((call) => `\n\n\`\`\`\n${call.name}(${call.arguments})\n\`\`\``).join("");
    this.body.replaceChildren(...blocks(this.text + calls));
    this.showFigures();
    if (follow) scrollToEnd();
  }

  showFigures() {
    const figures = [];
    const tokens = this.usage?.completion_tokens ?? this.deltas;
    const seconds = (this.last - this.first) / 1000;
    if (tokens) figures.push(`${tokens} token${tokens === 1 ? "" : "s"}`);
    if (tokens > 1 && seconds > 0.05) figures.push(`${((tokens - 1) / seconds).toFixed(1)} tokens/s`);
    if (this.first) figures.push(`${((this.first - this.started) / 1000).toFixed(2)} s to the first`);
    const cached = this.usage?.prompt_tokens_details?.cached_tokens;
    if (this.usage) figures.push(`prompt ${this.usage.prompt_tokens}, ${cached ?? 0} cached`);
    this.foot.replaceChildren(...figures.map((figure) => element("span", "", figure)), ...(this.buttons || []));
  }

  end(note) {
    this.body.classList.remove("working");
    this.buttons = [];
    if (this.text) {
      const copy = element("button", "", "Copy");
      copy.type = "button";
      copy.addEventListener("click", async () => {
        await navigator.clipboard.writeText(this.text);
        copy.textContent = "Copied";
        setTimeout(() => (copy.textContent = "Copy"), 1500);
      });
      this.buttons.push(copy);
    }
    if (note) this.buttons.push(element("span", "note", note));
    this.render();
  }

  fail(message, retry) {
    this.end();
    const box = element("div", "error", message + " ");
    box.setAttribute("role", "alert");
    const again = element("button", "quiet", "Try again");
    again.type = "button";
    again.addEventListener("click", retry);
    box.append(again);
    this.root.append(box);
    scrollToEnd();
  }
}

// Paragraphs, and what stands between ``` lines as code.
function blocks(text) {
  return text.split(/^```/m).flatMap((part, index) => {
    if (index % 2 === 1) {
      const lineEnd = part.indexOf("\n");
      return [element("pre", "", lineEnd < 0 ? "" : part.slice(lineEnd + 1).replace(/\n$/, ""))];
    }
    const trimmed = part.replace(/^\n+|\n+$/g, "");
    return trimmed ? trimmed.split(/\n{2,}/).map((paragraph) => element("p", "", paragraph)) : [];
  });
}

function nearEnd() {
  const s = $("scroller");
  return s.scrollHeight - s.scrollTop - s.clientHeight < 80;
}

function scrollToEnd() {
  $("scroller").scrollTop = $("scroller").scrollHeight;
}

function showUser(text) {
  const row = element("article", "message user");
  row.append(element("div", "text", text));
  $("messages").append(row);
}

// ---- talking to the server ----

function headers() {
  const out = { "content-type": "application/json" };
  if (saved.key) out.authorization = `Bearer ${saved.key}`;
  return out;
}

function requestBody() {
  const messages = saved.system ? [{ role: "system", content: saved.system }, ...conversation] : conversation;
  const body = { messages, stream: true, stream_options: { include_usage: true } };
  if (saved.thinking) body.enable_thinking = saved.thinking === "on";
  if (saved.temperature !== undefined && saved.temperature !== "") body.temperature = Number(saved.temperature);
  if (saved.maxTokens) body.max_tokens = Number(saved.maxTokens);
  return JSON.stringify(body);
}

async function failureOf(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `The server answered ${response.status}.`;
  }
}

// Calls `take` with the data of each Server-Sent Event.
async function readEvents(stream, take) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events)
      for (const line of event.split("\n"))
        if (line.startsWith("data: ")) take(line.slice(6));
  }
}

async function generate() {
  const view = new AnswerView();
  const controller = new AbortController();
  running = { controller, view };
  $("messages").append(view.root);
  scrollToEnd();
  showState();
  const retry = () => {
    view.root.remove();
    generate();
  };
  let complete = false;
  let finish = null;
  try {
    const response = await fetch("/v1/chat/completions", {
      method: "POST",
      headers: headers(),
      body: requestBody(),
      signal: controller.signal,
    });
    if (!response.ok) throw new Error(await failureOf(response));
    await readEvents(response.body, (data) => {
      if (data === "[DONE]") {
        complete = true;
        return;
      }
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Error(chunk.error.message);
      if (chunk.usage) view.usage = chunk.usage;
      const choice = chunk.choices?.[0];
      if (choice?.delta) view.add(choice.delta);
      finish = choice?.finish_reason ?? finish;
    });
    if (!complete) throw new Error("The answer broke off.");
    view.end(finish === "length" ? "cut at the longest answer" : "");
    keep(view);
  } catch (error) {
    if (running?.view !== view) return; // a new chat began meanwhile
    if (error.name === "AbortError") {
      view.end("stopped");
      keep(view);
    } else {
      const lost = error instanceof TypeError;
      view.fail(lost ? "The server can't be reached." : error.message, retry);
    }
  } finally {
    if (running?.view === view) running = null;
    showState();
  }
}

function keep(view) {
  conversation.push({ role: "assistant", content: view.text });
}

async function showModel() {
  try {
    const response = await fetch("/v1/models", { headers: headers() });
    if (!response.ok) throw new Error(await failureOf(response));
    const model = (await response.json()).data[0];
    $("model").textContent = model.max_model_len ? `${model.id} · ${model.max_model_len} tokens of context` : model.id;
    document.title = `${model.id} · Troupe`;
  } catch (error) {
    $("model").textContent = error instanceof TypeError ? "no server" : error.message;
  }
}

// ---- what the user does ----

function send(text) {
  if (running || !text.trim()) return;
  conversation.push({ role: "user", content: text });
  showUser(text);
  $("input").value = "";
  fitInput();
  generate();
}

function stop() {
  running?.controller.abort();
}

function newChat() {
  const old = running;
  running = null;
  old?.controller.abort();
  conversation = [];
  $("messages").replaceChildren();
  showState();
  $("input").focus();
}

function showState() {
  $("welcome").hidden = $("messages").childElementCount > 0;
  $("send").hidden = running !== null;
  $("stop").hidden = running === null;
  $("send").disabled = !$("input").value.trim();
  document.body.dataset.state = running ? "running" : "idle";
}

function fitInput() {
  const input = $("input");
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight}px`;
  $("send").disabled = !input.value.trim();
}

const fields = { system: "set-system", thinking: "set-thinking", temperature: "set-temperature", maxTokens: "set-max-tokens", key: "set-key" };

function openSettings() {
  for (const [name, id] of Object.entries(fields)) $(id).value = saved[name] ?? "";
  $("settings").showModal();
}

function keepSettings() {
  for (const [name, id] of Object.entries(fields)) saved[name] = $(id).value.trim();
  try {
    localStorage.setItem("troupe-settings", JSON.stringify(saved));
  } catch {
    // Storage may be switched off; the settings then hold until the page is left.
  }
  showModel();
}

$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  send($("input").value);
});
$("input").addEventListener("input", fitInput);
$("input").addEventListener("keydown", (event) => {
  // While an input method composes, Enter belongs to it.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send($("input").value);
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !$("settings").open) stop();
});
$("messages").addEventListener("click", (event) => {
  if (event.target.tagName === "SUMMARY" && running?.view.root.contains(event.target)) running.view.touched = true;
});
$("stop").addEventListener("click", stop);
$("new-chat").addEventListener("click", newChat);
$("open-settings").addEventListener("click", openSettings);
$("settings").addEventListener("close", keepSettings);
for (const text of suggestions) {
  const button = element("button", "quiet", text);
  button.type = "button";
  button.addEventListener("click", () => send(text));
  $("suggestions").append(button);
}
showState();
showModel();
