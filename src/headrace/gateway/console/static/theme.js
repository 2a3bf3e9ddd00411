// As the system has it, light, or dark. The choice is a cookie, so that pages arrive in the right colours.

const ORDER = ["", "light", "dark"];
const NAMES = { "": "as the system", light: "light", dark: "dark" };

export function listen() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const show = () => button.setAttribute("aria-label", `Theme: ${NAMES[root.dataset.theme ?? ""]}`);
  button.addEventListener("click", () => {
    const next = ORDER[(ORDER.indexOf(root.dataset.theme ?? "") + 1) % ORDER.length];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    document.cookie = `theme=${next}; path=/ui; max-age=${next ? 31536000 : 0}; samesite=lax`;
    show();
  });
  show();
}
