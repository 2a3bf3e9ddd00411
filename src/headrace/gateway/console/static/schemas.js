// Register schemas, and check their compatibility first.

import { ask, at, toastLater } from "./dom.js";
import { swap } from "./live.js";
import { check, forget, show } from "./verdict.js";

const form = document.querySelector("form[data-register]");
const compare = document.getElementById("compare");

// Replace the content in place, so that the arrow keys stay in the list.
compare?.addEventListener("change", () => {
  const address = new URL(location.href);
  for (const { name, value } of compare.elements) {
    if (name && value) address.searchParams.set(name, value);
    else if (name) address.searchParams.delete(name);
  }
  swap(address.href, false);
});

function schema() {
  const references = form.querySelector(".references");
  return {
    schema: form.elements.schema.value,
    schemaType: form.elements.type.value,
    references: references ? JSON.parse(references.textContent) : [],
  };
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const subject = form.dataset.register || form.elements.subject.value;
  forget(form);
  try {
    if (event.submitter?.value === "check") {
      const found = await check(subject, schema());
      if (found.fits) form.querySelector(".well").textContent = "It may be the next version.";
      else show(form, found);
      return;
    }
    const { id } = await ask("POST", `/subjects/${encodeURIComponent(subject)}/versions`, schema());
    toastLater(`Registered with id ${id}`);
    location.assign(at(`/ui/schemas/${encodeURIComponent(subject)}`));
  } catch (error) {
    if (!await explained(subject, error)) form.querySelector(".problem").textContent = error.message;
  }
});

// Show the messages of a compatibility check for a schema that was refused as incompatible.
async function explained(subject, error) {
  if (error.status !== 409) return false;
  try {
    const found = await check(subject, schema());
    if (!found.fits) show(form, found);
    return !found.fits;
  } catch {
    return false;  // show the registry's own message
  }
}

form.addEventListener("input", () => forget(form));
form.closest("dialog").addEventListener("opened", () => forget(form));
