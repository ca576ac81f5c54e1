// Puts new requests on top of the list as they end.
const rows = document.querySelector("tbody[data-live]");
const state = document.getElementById("live-state");
if (rows && window.EventSource) {
  const source = new EventSource(rows.dataset.live);
  const say = (words, on) => {
    state.textContent = words;
    const dot = document.createElement("span");
    dot.className = on ? "dot on" : "dot";
    state.prepend(dot);
  };
  const most = Math.max(rows.children.length, 50);
  source.addEventListener("open", () => say("live", true));
  source.addEventListener("error", () => say("not connected", false));
  source.addEventListener("rows", (event) => {
    // Made by the same template as the page itself, with everything escaped.
    const made = new DOMParser().parseFromString(`<table><tbody>${event.data}</tbody></table>`, "text/html");
    rows.prepend(...made.querySelectorAll("tr"));
    while (rows.children.length > most) rows.lastElementChild.remove();
  });
}
