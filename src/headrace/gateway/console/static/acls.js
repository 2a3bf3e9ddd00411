// The dialogs of ACLs: several operations make several ACLs, and each type of resource has its own operations.

import { body, submit } from "./forms.js";

const dialog = document.getElementById("create");
const form = dialog?.querySelector("form");

if (form) {
  const { types, cluster, cluster_type } = JSON.parse(dialog.querySelector(".types").textContent);
  const boxes = [...form.querySelectorAll("[name=operation]")];
  const chosen = () => types[form.elements.resource_type.value];

  const adapt = () => {
    const { operations } = chosen();
    for (const box of boxes) {
      box.disabled = box.closest("label").hidden = !operations.includes(box.value);
      if (box.disabled) box.checked = false;
    }
    for (const button of form.querySelectorAll("[data-choose]")) button.hidden = !chosen()[button.dataset.choose].length;
    form.querySelector(".row-actions").hidden = !form.querySelector("[data-choose]:not([hidden])");
    const { resource_name, pattern_type, resource_type } = form.elements;
    const only = resource_type.value === cluster_type;  // there is one cluster
    if (only) [resource_name.value, pattern_type.value] = [cluster, "LITERAL"];
    else if (resource_name.readOnly) resource_name.value = "";
    resource_name.readOnly = pattern_type.disabled = only;
  };

  form.elements.resource_type.addEventListener("change", adapt);
  dialog.addEventListener("opened", adapt);
  form.addEventListener("click", (event) => {
    const wanted = event.target.dataset.choose;
    if (wanted) for (const box of boxes) box.checked = chosen()[wanted].includes(box.value);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const operations = boxes.filter((box) => box.checked).map((box) => box.value);
    if (!operations.length) {
      form.querySelector(".problem").textContent = "select at least one operation";
      return;
    }
    const { operation, ...common } = body(form);
    submit(form, "POST /api/v1/acls", { acls: operations.map((each) => ({ ...common, operation: each })) });
  });
}

document.querySelector("[data-remove-acl]")?.addEventListener("submit", (event) => {
  event.preventDefault();
  submit(event.target, "DELETE /api/v1/acls", { acls: [body(event.target)] });
});
