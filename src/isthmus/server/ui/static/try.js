// Asks the model, and shows its words as they come.
const form = document.getElementById("try-form");
const answer = document.getElementById("try-answer");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  answer.textContent = "";
  try {
    await isthmusSend({ model: form.model.value, input: form.input.value }, (told) => {
      if (told.type === "response.output_text.delta") answer.textContent += told.delta;
      if (told.type === "response.failed") answer.textContent += `\n${told.response.error.message}`;
    });
  } catch (error) {
    answer.textContent = error.message;
  }
  button.disabled = false;
});
