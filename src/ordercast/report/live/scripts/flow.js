// The space-time diagram of what is going on: paper that moves to the left as time passes.

const PACE = 160; // pixels a second
const NAMES = 46; // where the paper ends under the names
const EDGE = 14;
const HEAD = { length: 6, width: 2.4 };

class Flow {
  constructor(box, names) {
    const few = names.length <= 8;
    this.box = box;
    this.names = names;
    this.pitch = few ? 80 : 40;
    this.top = 50;
    this.height = this.top + this.pitch * (names.length - 1) + (few ? 50 : 26);
    this.svg = made(SVG, "svg", { class: "diagram", height: this.height, role: "img" });
    this.svg.setAttribute("aria-label", "Messages between the processes in the last seconds; the list below says the same in words.");
    this.paper = made(SVG, "g", {});
    this.layers = {};
    for (const name of ["axis", "troubles", "holds", "arrows", "marks", "labels", "signs"]) {
      this.layers[name] = this.paper.appendChild(made(SVG, "g", { class: name }));
    }
    this.svg.append(hatch(), this.lanes(), this.paper, this.margin());
    box.append(this.svg);
    this.clear();
    new ResizeObserver(() => this.measure()).observe(box);
    this.measure();
    this.frame();
  }

  clear() {
    for (const layer of Object.values(this.layers)) layer.replaceChildren();
    this.messages = new Map();
    this.items = [];
    this.second = null;
    this.labelled = this.names.map(() => -Infinity);
    this.waits = new Waits(this, this.pitch > 60 ? 3 : 1);
    this.troubles = new Troubles(this);
  }

  measure() {
    this.width = this.box.clientWidth;
  }

  y(process) {
    return this.top + this.pitch * process;
  }

  x(time) {
    return ((time - this.zero) / 1e6) * PACE;
  }

  get first() {
    return this.now - ((this.width - NAMES - EDGE) / PACE) * 1e6;
  }

  lanes() {
    const lines = this.names.map((_, process) => made(SVG, "path", { class: "line up", d: `M0 ${this.y(process)} H9999` }));
    return made(SVG, "g", {}, ...lines);
  }

  margin() {
    const backdrop = made(SVG, "rect", { class: "backdrop", x: 0, y: 0, width: NAMES, height: this.height });
    const names = this.names.map((name, process) =>
      made(SVG, "g", { class: `name o${process % 8}` },
        made(SVG, "rect", { class: "swatch", x: 8, y: this.y(process) - 4, width: 8, height: 8, rx: 2 }),
        made(SVG, "text", { x: 21, y: this.y(process) + 4 }, name)));
    return made(SVG, "g", {}, backdrop, ...names);
  }

  // What the server says: the time by its clock, and what has happened since it last spoke.
  step(step) {
    this.zero = step.zero;
    this.told = { now: step.now, at: performance.now() };
    this.now = step.now;
    for (const moment of step.moments) this.take(...moment);
    this.tick(step.now);
    this.forget();
    this.waits.step(step);
    this.troubles.step(step.troubles);
    if (STILL.matches) this.scroll();
  }

  // Smoothly in between, thirty times a second.
  frame(turn = 0) {
    if (turn % 2 === 0 && this.told && !STILL.matches && !this.stopped) {
      this.now = this.told.now + (performance.now() - this.told.at) * 1e3;
      this.scroll();
    }
    requestAnimationFrame(() => this.frame(turn + 1));
  }

  scroll() {
    this.paper.setAttribute("transform", `translate(${(this.width - EDGE - this.x(this.now)).toFixed(1)} 0)`);
  }

  take(process, kind, time, origin, number) {
    const key = `${origin}:${number}`;
    if (!this.messages.has(key)) this.messages.set(key, { key, origin, sent: null, arrived: new Map(), delivered: new Set() });
    const message = this.messages.get(key);
    message.last = time;
    if (kind === "send") this.send(message, time);
    else if (kind === "receive") this.receive(message, process, time);
    else this.deliver(message, process, time);
  }

  send(message, time) {
    message.sent = time;
    this.mark("send", message, message.origin, time, 4);
    for (const [process, arrival] of message.arrived) this.arrow(message, process, arrival);
    this.waits.begin(message, message.origin, time);
    const lane = message.origin;
    if (((time - this.labelled[lane]) / 1e6) * PACE < 9 + 7 * message.key.length) return;
    this.labelled[lane] = time;
    const looks = { class: `label o${lane % 8}`, x: this.x(time), y: this.y(lane) - 9, "text-anchor": "middle" };
    this.add("labels", made(SVG, "text", looks, message.key), time);
  }

  receive(message, process, time) {
    if (message.arrived.has(process) || message.delivered.has(process)) return;
    message.arrived.set(process, time);
    if (message.sent) this.arrow(message, process, time);
    this.waits.begin(message, process, time);
  }

  deliver(message, process, time) {
    message.delivered.add(process);
    this.waits.end(message, process, time);
    if (process !== message.origin || time - message.sent > BRIEF) this.mark("deliver", message, process, time, 3.2);
  }

  mark(kind, message, process, time, radius) {
    const circle = made(SVG, "circle", { cx: this.x(time), cy: this.y(process), r: radius });
    this.add("marks", made(SVG, "g", { class: `mark ${kind} o${message.origin % 8}`, "data-message": message.key }, circle), time);
  }

  arrow(message, process, time) {
    const [x, y, to, end] = [this.x(message.sent), this.y(message.origin), this.x(time), this.y(process)];
    const length = Math.hypot(to - x, end - y) || 1;
    const [dx, dy] = [(to - x) / length, (end - y) / length];
    const [neckX, neckY] = [to - dx * (HEAD.length + 2), end - dy * (HEAD.length + 2)];
    const [left, right] = [1, -1].map((side) => `${round(neckX - side * dy * HEAD.width)} ${round(neckY + side * dx * HEAD.width)}`);
    const d = `M${round(x + dx * 4)} ${round(y + dy * 4)} L${round(neckX)} ${round(neckY)} M${round(to - dx * 2)} ${round(end - dy * 2)} L${left} L${right} Z`;
    const looks = { class: `arrow o${message.origin % 8}`, "data-message": message.key, "data-to": process };
    this.add("arrows", made(SVG, "g", looks, made(SVG, "path", { d })), time);
  }

  // A line for every second.
  tick(now) {
    this.second ??= Math.max(0, Math.floor((this.first - this.zero) / 1e6));
    while (this.zero + this.second * 1e6 < now) {
      const time = this.zero + this.second * 1e6;
      const [x, words] = [this.x(time), `${this.second} s`];
      this.add("axis", made(SVG, "path", { class: "grid", d: `M${x} 18 V${this.height}` }), time);
      this.add("axis", made(SVG, "text", { class: "tick", x, y: 12 }, words), time);
      this.second += 1;
    }
  }

  add(layer, element, until) {
    this.layers[layer].append(element);
    this.items.push({ element, until });
  }

  // What has left the paper is gone for good.
  forget() {
    const first = this.first - 1e6;
    this.items = this.items.filter(({ element, until }) => until > first || element.remove());
    for (const [key, message] of this.messages) if (message.last < first) this.messages.delete(key);
  }
}

const STILL = matchMedia("(prefers-reduced-motion: reduce)");

function round(value) {
  return value.toFixed(1);
}

function hatch() {
  const size = { id: "hatch", width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  return made(SVG, "defs", {}, made(SVG, "pattern", size, made(SVG, "path", { class: "hatching", d: "M0 0 V8" })));
}
