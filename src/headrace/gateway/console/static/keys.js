// `/` goes to the search field, `g` and a letter to a page, `?` shows the list.

const PATIENCE_MS = 1500;
let before = 0;  // when `g` was pressed

const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]");

export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey || typing(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const since = event.timeStamp - before;
    if (before && since < PATIENCE_MS) {
      before = 0;
      const link = document.querySelector(`.side nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    if (event.key === "g") before = event.timeStamp;
    else if (event.key === "?") document.getElementById("keys").showModal();
    else if (event.key === "/") {
      const field = document.querySelector("main input[type=search]");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    }
  });
}
