"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const hidden = new Set();

  // Light or dark: as the reader's system has it, until the button says otherwise.
  const button = document.getElementById("scheme");
  let dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const name = () => { button.textContent = dark ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    dark = !dark;
    root.style.colorScheme = dark ? "dark" : "light";
    name();
  });
  name();

  // Toggles: all figures show and hide the same series.
  const boxes = all("[data-toggles]");
  const readers = [];
  const apply = () => {
    for (const box of boxes) {
      const place = box.dataset.toggles;
      if (box.checked) hidden.delete(place); else hidden.add(place);
      for (const drawn of all(`.series-${place}`)) drawn.style.display = box.checked ? "" : "none";
    }
    for (const update of readers) update();
  };
  for (const box of boxes) box.addEventListener("change", apply);
  const every = document.querySelector("[data-all]");
  if (every) {
    const label = () => { every.textContent = boxes.some((box) => box.checked) ? "None" : "All"; };
    every.hidden = false;
    every.addEventListener("click", () => {
      const to = !boxes.some((box) => box.checked);
      for (const box of boxes) box.checked = to;
      apply();
      label();
    });
    for (const box of boxes) box.addEventListener("change", label);
  }

  // Readers: what the lines of a figure are at the place of a slider, or of the pointer.
  const shown = (value) => Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 4 });
  for (const reader of all(".reader")) {
    const svg = reader.closest("figure").querySelector("svg.drawing");
    const slider = reader.querySelector("input");
    const data = JSON.parse(reader.querySelector("script").textContent);
    const [left, top, width, height] = data.box;
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    line.setAttribute("class", "crosshair");
    line.setAttribute("y1", top);
    line.setAttribute("y2", top + height);
    svg.append(line);
    const update = () => {
      const at = Number(slider.value);
      const x = left + width * data.across[at];
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      const where = data.x[at].toLocaleString("en");
      reader.querySelector("output").textContent = where;
      slider.setAttribute("aria-valuetext", where);
      const list = reader.querySelector("ul");
      list.replaceChildren();
      const found = data.series
        .map(([place, label, values]) => [place, label, values[at]])
        .filter(([place, , value]) => value !== null && !hidden.has(place))
        .sort((one, other) => other[2] - one[2]);
      for (const [place, label, value] of found) {
        const item = document.createElement("li");
        const mark = document.querySelector(`[data-toggles="${place}"] + svg`);
        if (mark) item.append(mark.cloneNode(true));
        item.append(`${label} ${shown(value)}${data.unit}`);
        list.append(item);
      }
    };
    slider.addEventListener("input", update);
    svg.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect();
      const share = ((event.clientX - frame.left) / frame.width * svg.viewBox.baseVal.width - left) / width;
      if (share < 0 || share > 1) return;
      let best = 0;
      data.across.forEach((each, k) => {
        if (Math.abs(each - share) < Math.abs(data.across[best] - share)) best = k;
      });
      slider.value = best;
      update();
    });
    reader.hidden = false;
    readers.push(update);
    update();
  }

  // Paper has no folds.
  const folds = all("details");
  let open = [];
  addEventListener("beforeprint", () => {
    open = folds.filter((fold) => fold.open);
    for (const fold of folds) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of folds) fold.open = open.includes(fold); });
})();
