// Above a whole run: zoom, and filters by process and message.

const ZOOM_STEPS = [0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8];

class Zoom {
  constructor(drawing) {
    this.drawing = drawing;
    this.step = ZOOM_STEPS.indexOf(1);
    this.changed = () => {};
    const scaled = drawing.box.querySelectorAll(".strip, :scope > svg.names");
    const widthOf = (element) => parseFloat(element.style.width) || element.width.baseVal.value;
    this.sizes = [...scaled].map((element) => [element, widthOf(element)]);
    drawing.box.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.by(event.deltaY < 0 ? 1 : -1, event.clientX - drawing.box.getBoundingClientRect().left);
      },
      { passive: false },
    );
  }

  by(step, at) {
    this.to(Math.max(0, Math.min(this.step + step, ZOOM_STEPS.length - 1)), at);
  }

  reset() {
    this.to(ZOOM_STEPS.indexOf(1));
  }

  // What is at `at`, or else in the middle, stays there.
  to(step, at = this.drawing.box.clientWidth / 2) {
    const { drawing } = this;
    const before = drawing.scale;
    this.step = step;
    drawing.scale = ZOOM_STEPS[step];
    const { height } = drawing.strips;
    for (const [element, width] of this.sizes) {
      Object.assign(element.style, { width: `${width * drawing.scale}px`, height: `${height * drawing.scale}px` });
    }
    drawing.box.classList.toggle("far", drawing.scale < 0.7);
    drawing.box.scrollLeft = ((drawing.box.scrollLeft + at) * drawing.scale) / before - at;
    this.changed();
  }
}

class Toolbar {
  constructor(drawing, zoom) {
    this.drawing = drawing;
    const level = made(null, "output", { class: "level" }, "100 %");
    zoom.changed = () => (level.textContent = `${Math.round(drawing.scale * 100)} %`);
    const button = (text, label, act) => {
      const element = made(null, "button", { type: "button", "aria-label": label, title: label }, text);
      element.addEventListener("click", act);
      return element;
    };
    this.search = made(null, "input", { type: "search", placeholder: "0:3, 1:", size: "9" });
    this.search.setAttribute("aria-label", "Show only these messages");
    this.search.addEventListener("input", () => this.filtered());
    this.search.addEventListener("keydown", (event) => event.key === "Enter" && this.next());
    this.matches = made(null, "output", { class: "matches" });
    const smaller = button("−", "Zoom out", () => zoom.by(-1));
    const larger = button("+", "Zoom in", () => zoom.by(1));
    const filter = { class: "group", role: "group", "aria-label": "Show only these processes" };
    drawing.box.before(
      made(
        null,
        "div",
        { class: "toolbar", role: "toolbar", "aria-label": "Diagram" },
        made(null, "span", { class: "group" }, smaller, level, larger),
        made(null, "label", { class: "group" }, "Messages", this.search, this.matches),
        made(null, "span", filter, "Processes", ...this.chips()),
        ...this.jumps(button),
      ),
    );
  }

  // Through a run of many screens, from one thing that befell it to the next.
  *jumps(button) {
    const moments = momentsIn(this.drawing.strips);
    if (!moments.length) return;
    const told = made(null, "output", { class: "moment" });
    let at = -1;
    const next = button("Next", "Go to the next crash, return or partition", () => {
      at = (at + 1) % moments.length;
      told.textContent = `${moments[at].text} (${at + 1} of ${moments.length})`;
      this.drawing.reveal(moments[at]);
    });
    yield made(null, "span", { class: "group" }, "Crashes, partitions", next, told);
  }

  *chips() {
    for (const name of this.drawing.box.querySelectorAll(":scope > svg.names .name")) {
      const process = Number(name.dataset.process);
      const looks = { type: "button", class: `chip ${name.classList[1]}`, "aria-pressed": "false" };
      const chip = made(null, "button", looks, name.querySelector("tspan").textContent);
      chip.addEventListener("click", () => {
        const { processes } = this.drawing.filter;
        if (!processes.delete(process)) processes.add(process);
        chip.setAttribute("aria-pressed", processes.has(process));
        this.drawing.show();
      });
      yield chip;
    }
  }

  filtered() {
    const words = this.search.value.split(/[\s,]+/).filter(Boolean);
    const wishes = words.map((word) => (word.includes(":") ? word : `${word}:`));
    this.drawing.filter.messages = wishes;
    this.found = this.sends().filter((mark) => wishes.some((wish) => fits(wish, mark.message)));
    this.at = -1;
    this.matches.textContent = words.length ? `${this.found.length} found` : "";
    this.drawing.show();
  }

  sends() {
    const marks = [...this.drawing.lanes.values()].flat().filter((mark) => mark.kind === "send");
    return marks.sort((one, other) => one.x - other.x);
  }

  next() {
    if (!this.found?.length || !this.search.value) return;
    this.at = (this.at + 1) % this.found.length;
    this.matches.textContent = `${this.at + 1} of ${this.found.length}`;
    this.drawing.reveal(this.found[this.at]);
  }
}

// What befell a run that is too long for one screen, from left to right, asleep or not.
function momentsIn(strips) {
  if (!strips.pieces.length) return [];
  const found = new Map();
  const add = (x, text, key = text) => found.set(key, { x, text: text.replace(/ \(.*|: nothing.*/, "") });
  const part = (x, text) => add(x, text, `${x} ${text}`); // the same sides may be parted twice
  const first = (kinds) => strips.list.querySelectorAll(`.strip:first-child :is(${kinds})`);
  for (const mark of first(".mark.crash, .mark.recover")) add(mark.querySelector(".hit").cx.baseVal.value, hintOf(mark));
  for (const shade of first(".partition > rect")) part(shade.x.baseVal.value, shade.parentNode.querySelector("title").textContent);
  for (const { left, right, shape } of strips.pieces) {
    const [, kind, text] = /^<g class="(partition|mark crash|mark recover)\b.*?<title>(.*?)<\/title>/.exec(shape) ?? [];
    if (kind === "partition") part(left, plain(text));
    else if (kind) add((left + right) / 2, plain(text));
  }
  return [...found.values()].sort((one, other) => one.x - other.x);
}
