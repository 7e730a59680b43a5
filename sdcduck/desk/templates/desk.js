"use strict";
// A slider shows its number while it is moved, and sends its form once it has rested; without scripts the button does.
const RESTED = 400;
for (const slider of document.querySelectorAll("input[type=range]")) {
  const number = document.querySelector(`output[for="${slider.id}"]`);
  let waiting = 0;
  slider.addEventListener("input", () => {
    clearTimeout(waiting);
    number.value = slider.value;
  });
  slider.addEventListener("change", () => {
    clearTimeout(waiting);
    slider.form.elements.slid.value = slider.name;
    waiting = setTimeout(() => slider.form.requestSubmit(), RESTED);
  });
}
