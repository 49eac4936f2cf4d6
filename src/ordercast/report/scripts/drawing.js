// One diagram: what is in it, and what of it is lit.

const SHAPES = ".mark, .arrow, .hold, .label";

class Drawing {
  constructor(box, run) {
    this.box = box;
    this.run = run;
    this.shapes = new Map();
    this.chosen = null;
    this.filter = { processes: new Set(), messages: [] };
    this.scale = 1;
    this.strips = new Strips(box, (strip) => this.woken(strip));
    this.woken(this.strips.list);
  }

  woken(part) {
    for (const element of this.shapes.keys()) if (!element.isConnected) this.shapes.delete(element);
    for (const element of part.querySelectorAll(SHAPES)) {
      const shape = shapeOf(element.getAttribute("class"), element.dataset);
      this.shapes.set(element, shape);
      if (this.chosen || this.filtering) this.look(element, shape);
    }
  }

  get filtering() {
    return this.filter.processes.size > 0 || this.filter.messages.length > 0;
  }

  // Each process's marks from left to right, the lanes from top to bottom; asleep or not.
  get lanes() {
    this.found ??= this.findMarks();
    return this.found;
  }

  findMarks() {
    const lanes = new Map();
    for (const name of this.box.querySelectorAll(":scope > svg.names .name")) {
      const y = name.querySelector("rect").y.baseVal.value + 4;
      lanes.set(Number(name.dataset.process), Object.assign([], { y }));
    }
    const seen = new Set();
    const add = (shape, x) => {
      const key = `${shape.process} ${shape.position}`;
      if (!seen.has(key)) lanes.get(shape.process)?.push({ ...shape, x });
      seen.add(key);
    };
    for (const element of this.strips.list.querySelectorAll(".strip:first-child .mark")) {
      add(this.shapes.get(element), element.querySelector(".hit").cx.baseVal.value);
    }
    for (const piece of this.strips.pieces) {
      if (piece.layer === "marks") add(shapeIn(piece.shape), (piece.left + piece.right) / 2);
    }
    for (const marks of lanes.values()) marks.sort((one, other) => one.x - other.x);
    return lanes;
  }

  elementOf(mark) {
    this.strips.wakeAt(mark.x);
    return this.strips.list.querySelector(`.mark[data-process="${mark.process}"][data-position="${mark.position}"]`);
  }

  // Light what happened before and after a message, or a mark that is about none.
  choose(shape) {
    const anchor = this.run.causality.sends.get(shape.message) ?? shape;
    if (Number.isNaN(anchor.position)) return;
    this.chosen = this.run.causality.cone(anchor.process, anchor.position);
    this.show();
  }

  clear() {
    this.chosen = null;
    this.show();
  }

  show() {
    this.box.classList.toggle("choosing", this.chosen !== null);
    for (const [element, shape] of this.shapes) this.look(element, shape);
    this.showCone();
  }

  look(element, shape) {
    const side = this.chosen ? this.side(shape, element) : "plain";
    element.classList.toggle("off", side === "" || !this.passes(shape));
    element.classList.toggle("chosen", side === "self" && shape.layer === "mark");
  }

  side(shape, element) {
    const mark = shape.layer === "mark" ? shape : this.markOf(shape, element);
    if (!mark) return this.chosen.sideOfCopy(shape.message, shape.process);
    return this.chosen.side(mark.process, mark.position) || this.chosen.side(mark.process, this.lastOf(mark));
  }

  // Where a mark ends that is both an arrival and the delivery.
  lastOf(mark) {
    if (mark.kind !== "deliver" || mark.again) return mark.position;
    return this.run.causality.delivered(mark.message, mark.process) ?? mark.position;
  }

  // The mark that a label belongs to: the nearest of its kind. None for arrows, bars and their labels.
  markOf(shape, element) {
    if (shape.layer !== "label" || shape.kind === "held") return null;
    const x = element.x.baseVal[0].value;
    let nearest = null;
    for (const mark of this.lanes.get(shape.process)) {
      if (mark.kind !== shape.kind || mark.message !== shape.message) continue;
      if (!nearest || Math.abs(mark.x - x) < Math.abs(nearest.x - x)) nearest = mark;
    }
    return nearest;
  }

  passes(shape) {
    const { processes, messages } = this.filter;
    const sender = shape.layer === "arrow" ? Number(shape.message.split(":")[0]) : shape.process;
    const here = !processes.size || processes.has(shape.process) || processes.has(sender);
    return here && (!messages.length || messages.some((wish) => fits(wish, shape.message ?? "")));
  }

  // A band on each process's line: up to where the past goes, and from where the future is.
  showCone() {
    this.bands?.remove();
    if (!this.chosen) return;
    const { width, height } = this.strips;
    this.bands = made(SVG, "svg", { class: "cone", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    for (const marks of this.lanes.values()) {
      const sides = marks.map((mark) => this.side(mark));
      const last = sides.findLastIndex((side) => side === "past" || side === "self");
      const first = sides.findIndex((side) => side === "future");
      if (last >= 0) this.bands.append(band("past", this.start, marks[last].x, marks.y));
      if (first >= 0) this.bands.append(band("future", marks[first].x, width - 6, marks.y));
    }
    this.strips.list.append(this.bands);
  }

  get start() {
    return this.box.querySelector(":scope > svg.names").width.baseVal.value;
  }

  // What the marks and bars of a message say, awake or not: waits first, and this process first.
  hints(message, process) {
    this.told ??= this.gatherHints();
    const order = (hint) => (hint.layer === "hold" ? 0 : 2) + (hint.process === process ? 0 : 1);
    const known = (this.told.get(message) ?? []).toSorted((one, other) => order(one) - order(other));
    return known.map((hint) => hint.text);
  }

  gatherHints() {
    const told = new Map();
    const add = (shape, text) => {
      if (!told.has(shape.message)) told.set(shape.message, []);
      told.get(shape.message).push({ layer: shape.layer, process: shape.process, text });
    };
    for (const element of this.strips.list.querySelectorAll(".strip:first-child :is(.mark, .hold)")) {
      add(this.shapes.get(element), hintOf(element));
    }
    for (const { layer, shape } of this.strips.pieces) {
      if (layer === "marks" || layer === "holds") add(shapeIn(shape), plain(shape.match(/<title>(.*?)<\/title>/)[1]));
    }
    return told;
  }

  // Scroll until a mark is in sight, with some air around it.
  reveal(mark) {
    const { scrollLeft, clientWidth } = this.box;
    const x = mark.x * this.scale;
    const hidden = x < scrollLeft + this.start * this.scale + 40 || x > scrollLeft + clientWidth - 40;
    if (hidden) this.box.scrollLeft = x - clientWidth / 2;
    this.box.scrollIntoView({ block: "nearest" });
  }
}

function shapeOf(classes, { message, process, position }) {
  const [layer, kind, ...more] = classes.split(" ");
  const again = more.includes("again");
  return { layer, kind, again, message, process: Number(process), position: Number(position) };
}

// The same from text.
function shapeIn(markup) {
  const opening = markup.slice(0, markup.indexOf(">"));
  const pairs = [...opening.matchAll(/ (?:data-)?(\w+)="([^"]*)"/g)];
  const attributes = Object.fromEntries(pairs.map(([, name, value]) => [name, value]));
  return shapeOf(attributes.class, attributes);
}

function plain(escaped) {
  const area = document.createElement("textarea");
  area.innerHTML = escaped;
  return area.value;
}

// "0:3" is one message, "0:" all of process 0.
function fits(wish, message) {
  return wish.endsWith(":") ? message.startsWith(wish) : message === wish;
}

function band(side, left, right, y) {
  return made(SVG, "path", { class: side, d: `M${left} ${y} L${right} ${y}` });
}
