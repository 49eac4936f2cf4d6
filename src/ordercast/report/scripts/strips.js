// A long diagram comes in strips. Those near what is in sight are awake, and part of the document;
// the others are text.

const LAYERS = ["axis", "lanes", "holds", "arrows", "marks", "labels", "focus"];
const PIECE = /^(\w+)\t([-\d.]+)\t([-\d.]+)\t(.*)$/;

class Strips {
  constructor(box, woken) {
    this.box = box;
    this.woken = woken;
    this.list = box.querySelector(".strips");
    const first = this.list.querySelector("svg.diagram");
    this.height = first.viewBox.baseVal.height;
    this.edges = [0, first.viewBox.baseVal.width];
    this.pieces = [];
    const rest = box.nextElementSibling?.matches(".rest") ? box.nextElementSibling : null;
    if (rest) this.read(rest.textContent, first.getAttribute("class"));
  }

  get width() {
    return this.edges.at(-1);
  }

  read(text, classes) {
    const [edges, ...lines] = text.split("\n");
    this.edges = edges.split("\t").map(Number);
    this.classes = classes;
    this.pieces = lines.map((line) => {
      const [, layer, left, right, shape] = PIECE.exec(line);
      return { layer, left: Number(left), right: Number(right), shape };
    });
    this.asleep = this.edges.slice(1, -1).map(() => []);
    for (const piece of this.pieces) {
      const last = this.indexAt(piece.right);
      for (let index = Math.max(1, this.indexAt(piece.left)); index <= last; index++) {
        this.asleep[index - 1].push(piece);
      }
    }
    for (let index = 1; index < this.edges.length - 1; index++) {
      const strip = made(null, "div", { class: "strip" });
      const width = this.edges[index + 1] - this.edges[index];
      Object.assign(strip.style, { width: `${width}px`, height: `${this.height}px` });
      this.list.append(strip);
    }
    const nearby = (entries) => entries.forEach((entry) => this.turn(entry.target, entry.isIntersecting));
    this.observer = new IntersectionObserver(nearby, { root: this.box, rootMargin: "0px 60%" });
    const others = this.list.querySelectorAll(".strip:not(:first-child)");
    const watch = () => others.forEach((strip) => (this.observer.unobserve(strip), this.observer.observe(strip)));
    watch();
    window.addEventListener("beforeprint", () => others.forEach((strip) => this.turn(strip, true)));
    window.addEventListener("afterprint", watch);
  }

  indexAt(x) {
    const index = this.edges.findIndex((edge) => edge > x);
    return Math.max(0, index < 0 ? this.edges.length - 2 : index - 1);
  }

  turn(strip, awake) {
    if (awake === strip.hasChildNodes()) return;
    if (awake) this.wake(strip);
    else if (!strip.contains(document.activeElement)) strip.replaceChildren();
  }

  wake(strip) {
    const index = [...this.list.querySelectorAll(".strip")].indexOf(strip);
    const [left, right] = [this.edges[index], this.edges[index + 1]];
    const pieces = Object.groupBy(this.asleep[index - 1], (piece) => piece.layer);
    const shapes = (name) => (pieces[name] ?? []).map((piece) => piece.shape).join("");
    const layers = LAYERS.map((name) => `<g class="${name}">${shapes(name)}</g>`);
    const names = this.box.querySelector(":scope > svg.names");
    // Each takes its share of the paper's width, so that both are scaled alike.
    strip.innerHTML =
      `<svg class="again" viewBox="${names.getAttribute("viewBox")}" aria-hidden="true">` +
      `<use href="#${names.querySelector("g").id}"/></svg>` +
      `<svg class="${this.classes}" viewBox="${left} 0 ${right - left} ${this.height}">${layers.join("")}</svg>`;
    for (const svg of strip.children) svg.style.flex = `${svg.viewBox.baseVal.width} 1 0`;
    this.woken(strip);
  }

  // So that an element exists which is about to get the focus.
  wakeAt(x) {
    this.turn(this.list.querySelectorAll(".strip")[this.indexAt(x)], true);
  }
}
