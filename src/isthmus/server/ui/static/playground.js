// One column for each model: what would be sent and why, then the events as they come.
const play = document.getElementById("play");
const sides = document.getElementById("play-sides");
const problem = document.getElementById("play-problem");

const columns = () => {
  const models = [play.first.value.trim(), play.second.value.trim()].filter((name, at) => name || at === 0);
  sides.replaceChildren();
  return models.map((model) => {
    const side = document.getElementById("side").content.cloneNode(true).firstElementChild;
    side.querySelector(".side-name").textContent = model || "the default";
    sides.append(side);
    return { model, side };
  });
};

const read = () => {
  problem.textContent = "";
  try {
    return JSON.parse(document.getElementById("play-body").value);
  } catch (error) {
    problem.textContent = `This is no JSON: ${error.message}`;
    return null;
  }
};

const cell = (row, text, kind) => {
  const made = document.createElement("td");
  if (kind) {
    const tag = document.createElement("span");
    tag.className = `tag ${kind}`;
    tag.textContent = text;
    made.append(tag);
  } else {
    // Names stand in backticks, as diagnostics have them.
    text.split("`").forEach((part, at, parts) => {
      const named = at % 2 === 1 && parts.length % 2 === 1;
      const piece = named ? document.createElement("code") : document.createTextNode(part);
      if (named) piece.textContent = part;
      made.append(piece);
    });
  }
  row.append(made);
};

const showPlan = async ({ model, side }, body) => {
  const { root, token } = document.body.dataset;
  const answer = await fetch(`${root}/plan`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-isthmus-token": token },
    body: JSON.stringify(model ? { ...body, model } : body),
  });
  const plan = await answer.json();
  const refused = plan.refused ?? plan.error;
  if (refused) {
    showState(side, "rejected", "refused");
    side.querySelector(".side-answer").textContent = refused.message;
    return false;
  }
  side.querySelector(".side-name").textContent = `${plan.provider}/${plan.model}`;
  side.querySelector(".side-body").textContent = JSON.stringify(plan.body, null, 2);
  for (const one of plan.decisions) {
    const row = document.createElement("tr");
    cell(row, one.path);
    cell(row, one.action, one.action);
    cell(row, one.reason);
    side.querySelector(".side-decisions").append(row);
  }
  return true;
};

const showState = (side, kind, words) => {
  const tag = side.querySelector(".side-state");
  tag.className = `tag side-state ${kind}`;
  tag.textContent = words;
};

const MOST_EVENTS = 500;
const showAnswer = async ({ model, side }, body) => {
  const began = performance.now();
  const events = side.querySelector(".side-events");
  const answer = side.querySelector(".side-answer");
  showState(side, "unknown", "running");
  try {
    await isthmusSend(model ? { ...body, model } : body, (told) => {
      const line = document.createElement("li");
      line.textContent = `${((performance.now() - began) / 1000).toFixed(3)} ${told.type}${told.delta ? ` ${JSON.stringify(told.delta)}` : ""}`;
      if (events.children.length < MOST_EVENTS) events.append(line);
      if (told.type === "response.output_text.delta") answer.textContent += told.delta;
      if (told.response && /completed|incomplete|failed/.test(told.type)) {
        showState(side, told.response.status, told.response.status);
        if (told.response.error) answer.textContent += `\n${told.response.error.message}`;
      }
    });
  } catch (error) {
    showState(side, "failed", "failed");
    answer.textContent += error.message;
  }
};

document.getElementById("play-plan").addEventListener("click", async () => {
  const body = read();
  if (body) await Promise.all(columns().map((column) => showPlan(column, body)));
});
play.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = read();
  if (!body) return;
  await Promise.all(columns().map(async (column) => {
    if (await showPlan(column, body)) await showAnswer(column, body);
  }));
});
