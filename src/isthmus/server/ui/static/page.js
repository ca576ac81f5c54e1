// Copies what stands in a snippet.
for (const snippet of document.querySelectorAll(".snippet")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(snippet.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  snippet.append(button);
}

// Sends a request as the playground does, and hands out each event of its stream.
window.isthmusSend = async (body, tell, signal) => {
  const { root, token } = document.body.dataset;
  const answer = await fetch(`${root}/send`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-isthmus-token": token },
    body: JSON.stringify({ ...body, stream: true }),
    signal,
  });
  if (!answer.ok) {
    const told = await answer.json().catch(() => null);
    throw new Error(told?.error?.message ?? `HTTP ${answer.status}`);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const frames = rest.split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data && data !== "[DONE]") tell(JSON.parse(data));
    }
  }
};
