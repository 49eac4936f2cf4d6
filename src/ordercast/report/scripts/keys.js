// Getting about with the keyboard: left and right along a process, up and down between processes.

const HELP =
  "Arrow keys go from event to event, Enter lights up the causal past and future, Escape clears, " +
  "plus and minus zoom.";

class Keys {
  constructor(drawing, { card, zoom, light }) {
    Object.assign(this, { drawing, card, zoom, light });
    this.mark = null;
    const { box } = drawing;
    box.setAttribute("role", "application");
    box.setAttribute("aria-roledescription", "space-time diagram");
    box.setAttribute("aria-description", HELP);
    drawing.strips.list.querySelector("svg.diagram").setAttribute("role", "group");
    box.addEventListener("keydown", (event) => this.pressed(event));
    box.addEventListener("focusin", (event) => this.entered(event.target));
    box.addEventListener("focusout", () => card.hide());
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => this.along(-1),
      ArrowRight: () => this.along(1),
      ArrowUp: () => this.across(-1),
      ArrowDown: () => this.across(1),
      Home: () => this.go(this.lane().at(0)),
      End: () => this.go(this.lane().at(-1)),
      Enter: () => this.light(this.drawing, this.mark),
      " ": () => this.light(this.drawing, this.mark),
      "+": () => this.zoom.by(1),
      "=": () => this.zoom.by(1),
      "-": () => this.zoom.by(-1),
      0: () => this.zoom.reset(),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  entered(element) {
    const shape = this.drawing.shapes.get(element);
    if (!shape) return;
    this.mark = this.drawing.lanes.get(shape.process).find((mark) => mark.position === shape.position);
    this.card.show(this.drawing, element);
  }

  lane() {
    const lanes = [...this.drawing.lanes.values()].filter((marks) => marks.length);
    return this.drawing.lanes.get(this.mark?.process) ?? lanes[0] ?? [];
  }

  along(step) {
    const lane = this.lane();
    const at = lane.indexOf(this.mark);
    this.go(at < 0 ? lane[0] : lane[Math.max(0, Math.min(at + step, lane.length - 1))]);
  }

  across(step) {
    const lanes = [...this.drawing.lanes.values()].filter((marks) => marks.length);
    const at = lanes.indexOf(this.lane());
    const next = lanes[Math.max(0, Math.min(at + step, lanes.length - 1))];
    if (!next || !this.mark) return this.go(lanes[0]?.[0]);
    const near = (mark) => Math.abs(mark.x - this.mark.x);
    this.go(next.reduce((best, mark) => (near(mark) < near(best) ? mark : best)));
  }

  // The mark itself gets the focus, so that a screen reader says what it is.
  go(mark) {
    if (!mark) return;
    this.drawing.reveal(mark);
    const element = this.drawing.elementOf(mark);
    hintOf(element);
    element.setAttribute("tabindex", "-1");
    element.setAttribute("role", "button");
    element.focus({ preventScroll: true });
  }
}
