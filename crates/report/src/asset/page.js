"use strict";
{
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const wanted = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : wanted.matches);
  const label = () => { button.textContent = dark() ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); });
  wanted.addEventListener("change", label);
  label();
  button.hidden = false;

  // A heat map is one tab stop. Arrow keys move between cells.
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  for (const map of document.querySelectorAll("svg.heat")) {
    // Chromium makes an SVG with focus listeners an additional tab stop. The frame listens instead.
    const frame = map.parentElement;
    const readout = map.closest("figure").querySelector(".readout");
    const rows = [...map.querySelectorAll("[role=row]")].map((row) => [...row.querySelectorAll("[role=gridcell]")]);
    const show = (cell) => { readout.textContent = cell.querySelector("title").textContent; };
    frame.addEventListener("pointerover", (event) => { if (event.target.matches("[role=gridcell]")) show(event.target); });
    frame.addEventListener("focusin", (event) => { if (event.target.matches("[role=gridcell]")) show(event.target); });
    frame.addEventListener("keydown", (event) => {
      const r = rows.findIndex((row) => row.includes(event.target));
      if (r < 0) return;
      const c = rows[r].indexOf(event.target);
      const [down, right] = steps[event.key] ?? [0, 0];
      const row = rows[r + down] ?? rows[r];
      let next = row[c + right];
      if (event.key === "Home") next = row[0];
      if (event.key === "End") next = row[row.length - 1];
      if (!next || next === event.target) return;
      event.preventDefault();
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }

  // A table that is cut says so, and is a tab stop, so that arrow keys scroll it.
  const sizes = new ResizeObserver((all) => {
    for (const { target } of all) {
      if (target.toggleAttribute("data-cut", target.scrollWidth > target.clientWidth + 1)) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const wide of document.querySelectorAll(".wide")) sizes.observe(wide);
  // Each figure can be saved as it would look on white paper.
  const looks = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "display",
    "font-family", "font-size", "font-weight", "text-anchor"];
  const save = (figure, svg) => {
    const copy = svg.cloneNode(true);
    const theme = root.dataset.theme;
    root.dataset.theme = "light";
    if (!svg.matches(".paper")) {
      // Colours of these figures come from the style sheet.
      const parts = [...svg.querySelectorAll("*")];
      [...copy.querySelectorAll("*")].forEach((part, at) => {
        const style = getComputedStyle(parts[at]);
        for (const look of looks) part.setAttribute(look, style.getPropertyValue(look));
        for (const name of ["class", "role", "tabindex"]) part.removeAttribute(name);
      });
      const box = svg.viewBox.baseVal;
      const paper = document.createElementNS(svg.namespaceURI, "rect");
      for (const [name, value] of [["width", box.width], ["height", box.height], ["fill", "white"]]) paper.setAttribute(name, value);
      copy.prepend(paper);
      copy.setAttribute("width", box.width);
      copy.setAttribute("height", box.height);
    } else {
      copy.setAttribute("font-family", "DejaVu Sans, Verdana, sans-serif");
      for (const text of copy.querySelectorAll("text")) text.removeAttribute("font-family");
    }
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    copy.removeAttribute("class");
    copy.setAttribute("xmlns", svg.namespaceURI);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
    link.download = `${figure.id || "figure"}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  for (const figure of document.querySelectorAll("figure")) {
    for (const svg of figure.querySelectorAll("svg.plot, svg.paper")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "save";
      button.textContent = "Save as SVG";
      button.addEventListener("click", () => save(figure, svg));
      svg.parentElement.after(button);
    }
  }
}
