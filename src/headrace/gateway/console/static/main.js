// The script of every page.

import * as forms from "./forms.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as theme from "./theme.js";
import { toast } from "./dom.js";

live.listen();
keys.listen();
theme.listen();
forms.listen();

// On a phone the bar of pages, and a bar of tabs, may be wider than the screen.
for (const here of document.querySelectorAll(".side nav [aria-current], .tabs [aria-current]")) {
  here.closest("nav").scrollLeft = here.offsetLeft - 80;
}

const said = sessionStorage.getItem("toast");
if (said) {
  sessionStorage.removeItem("toast");
  toast(said);
}
