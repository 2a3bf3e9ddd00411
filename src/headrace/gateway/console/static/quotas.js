// The dialogs of quotas: the fields of an entity depend on its kind, and IP addresses have a quota of their own.

import { submit } from "./forms.js";

const OF_ADDRESSES = "connection_creation_rate";
const form = document.querySelector("[data-quota=set]");

function adapt() {
  const types = form.elements.of.value.split(" ");
  for (const part of form.querySelectorAll("[data-entity]")) {
    part.hidden = !types.includes(part.dataset.entity);
    const [name, isDefault] = [part.querySelector("[data-name]"), part.querySelector("[data-default]")];
    name.disabled = part.hidden || isDefault.checked;
    name.required = !name.disabled;
    isDefault.disabled = part.hidden;
  }
  const { quota } = form.elements;
  const isAddress = types.includes("ip");
  for (const option of quota.options) option.hidden = option.disabled = (option.value === OF_ADDRESSES) !== isAddress;
  if (quota.selectedOptions[0]?.disabled) quota.value = [...quota.options].find((each) => !each.disabled).value;
  for (const unit of form.querySelectorAll("[data-unit-of]")) unit.hidden = unit.dataset.unitOf !== quota.value;
}

// null is the default of a type.
function entity() {
  const parts = [...form.querySelectorAll("[data-entity]")].filter((part) => !part.hidden);
  return Object.fromEntries(parts.map((part) => {
    const isDefault = part.querySelector("[data-default]").checked;
    return [part.dataset.entity, isDefault ? null : part.querySelector("[data-name]").value];
  }));
}

form?.addEventListener("change", adapt);
document.getElementById("set")?.addEventListener("opened", adapt);

document.addEventListener("submit", (event) => {
  const sent = event.target;
  const action = sent.dataset.quota;
  if (!action) return;
  event.preventDefault();
  const { quota, value } = sent.elements;
  const of = action === "set" ? entity() : JSON.parse(sent.elements.entity.value);
  const change = action === "remove" ? { unset: [quota.value] } : { set: { [quota.value]: Number(value.value) } };
  submit(sent, "PATCH /api/v1/quotas", { entity: of, ...change });
});
