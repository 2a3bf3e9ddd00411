// Start moves of partitions: exactly those that the page shows, or one with the brokers that were typed.

import { ask, at, toastLater } from "./dom.js";

function typed(form) {
  const { topic, partition, replicas } = form.elements;
  const brokers = replicas.value.split(",").map((each) => each.trim());
  if (!brokers.every((each) => /^\d+$/.test(each))) throw new Error("write the ids of brokers with commas between them, the preferred leader first: 1, 2, 3");
  return [{ topic: topic.value, partition: Number(partition.value), replicas: brokers.map(Number) }];
}

for (const form of document.querySelectorAll("form[data-moves]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const problem = form.querySelector(".problem");
    const button = form.querySelector("[type=submit]");
    problem.textContent = "";
    button.disabled = true;
    try {
      const shown = form.querySelector(".moves");
      const moves = shown ? JSON.parse(shown.textContent) : typed(form);
      await ask("POST", "/api/v1/reassignments", { moves });
      toastLater("The move has begun");
      location.assign(at(form.dataset.then));
    } catch (error) {
      problem.textContent = error.message;
      button.disabled = false;
    }
  });
}
