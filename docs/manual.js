// The search of the manual's page: entries and sections that have all the words that were typed.
"use strict";
(() => {
  const most = 40; // results that are shown
  const words = (text) => text.toLowerCase().split(/\s+/).filter((word) => word);

  // What can be found: each section with its text, and each entry with its description.
  function places() {
    const found = [];
    for (const heading of document.querySelectorAll("h2, h3, h4, dt")) {
      let text = "";
      const entry = heading.tagName === "DT";
      for (let next = heading.nextElementSibling; next; next = next.nextElementSibling) {
        if (/^(H[1-4]|DT)$/.test(next.tagName) || next.classList.contains("header")) break;
        text += " " + next.textContent;
        if (entry) break;
      }
      const target = heading.querySelector("[id]") || heading;
      if (!target.id) target.id = "place-" + found.length;
      found.push({ title: heading.textContent.replace(/\s*¶/g, "").trim(), text, id: target.id });
    }
    return found;
  }

  // Titles that have all words come first.
  function search(all, wanted) {
    const has = (text) => wanted.every((word) => text.includes(word));
    const ranked = all.map((place) => {
      const title = place.title.toLowerCase();
      return [has(title) ? 2 : has(title + " " + place.text.toLowerCase()) ? 1 : 0, place];
    });
    return ranked.filter(([rank]) => rank).sort((one, other) => other[0] - one[0]).map(([, place]) => place);
  }

  function begin() {
    const box = document.createElement("div");
    box.id = "search";
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = "Search the manual ( / )";
    input.setAttribute("aria-label", input.placeholder);
    const list = document.createElement("ol");
    box.append(input, list);
    document.body.prepend(box);
    const all = places();
    input.addEventListener("input", () => {
      const wanted = words(input.value);
      const found = wanted.length ? search(all, wanted) : [];
      list.replaceChildren(...found.slice(0, most).map((place) => {
        const item = document.createElement("li");
        const link = document.createElement("a");
        link.href = "#" + place.id;
        link.textContent = place.title;
        const text = document.createElement("small");
        text.textContent = place.text.trim().replace(/\s+/g, " ").slice(0, 120);
        item.append(link, text);
        return item;
      }));
      if (wanted.length && !found.length) list.textContent = "Nothing has all of these words.";
    });
    list.addEventListener("click", () => { list.replaceChildren(); });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && document.activeElement !== input) { event.preventDefault(); input.focus(); }
      if (event.key === "Escape") { input.value = ""; list.replaceChildren(); input.blur(); }
    });
  }
  document.addEventListener("DOMContentLoaded", begin);
})();
