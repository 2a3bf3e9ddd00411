// Registering schemas, and asking first whether they may be.

import { ask, toastLater } from "./dom.js";

const form = document.querySelector("form[data-register]");
const compare = document.getElementById("compare");

compare?.addEventListener("change", () => {
  for (const field of compare.elements) field.disabled = field.name === "against" && !field.value;
  compare.submit();
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
  const problem = form.querySelector(".problem");
  const well = form.querySelector(".well");
  problem.textContent = "";
  if (well) well.textContent = "";
  try {
    if (event.submitter?.value === "check") {
      const { is_compatible: fits, messages } = await ask("POST", `${form.dataset.check}?verbose=true`, schema());
      if (fits) well.textContent = "It may be the next version.";
      else problem.textContent = ["It may not be the next version.", ...(messages ?? [])].join("\n");
      return;
    }
    const { id } = await ask("POST", `/subjects/${encodeURIComponent(subject)}/versions`, schema());
    toastLater(`Registered with id ${id}`);
    location.assign(`/ui/schemas/${encodeURIComponent(subject)}`);
  } catch (error) {
    problem.textContent = error.message;
  }
});

form.addEventListener("input", () => { for (const said of form.querySelectorAll(".well, .problem")) said.textContent = ""; });
