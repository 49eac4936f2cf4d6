// The card beside what the pointer or the keyboard is on: what it is, and all about its message.

const LINES_MAX = 5;

class Card {
  constructor() {
    this.element = made(null, "div", { class: "card", hidden: "", "aria-hidden": "true" });
    document.body.append(this.element);
  }

  show(drawing, element) {
    const shape = drawing.shapes.get(element);
    const own = hintOf(element);
    const about = drawing.run.messages[shape.message];
    const all = shape.message ? [...new Set(drawing.hints(shape.message, shape.process))] : [];
    const others = all.filter((hint) => hint !== own);
    const lines = others.slice(0, LINES_MAX);
    if (others.length > LINES_MAX) lines.push(`and ${others.length - LINES_MAX} more`);
    this.element.replaceChildren(
      made(null, "strong", {}, own),
      ...(about ? [made(null, "p", {}, about)] : []),
      ...lines.map((line) => made(null, "p", { class: "elsewhere" }, line)),
    );
    this.element.hidden = false;
    this.target = element;
    this.place();
  }

  place() {
    if (this.element.hidden) return;
    const target = this.target.getBoundingClientRect();
    const { innerWidth, innerHeight } = window;
    const { width, height } = this.element.getBoundingClientRect();
    const left = Math.max(8, Math.min(target.left + target.width / 2 + 12, innerWidth - width - 8));
    const below = target.bottom + 12;
    const top = below + height > innerHeight ? Math.max(8, target.top - height - 12) : below;
    Object.assign(this.element.style, { left: `${left}px`, top: `${top}px` });
  }

  hide() {
    this.element.hidden = true;
  }
}

// The browser's own tooltip would come on top of the card, so the title becomes a label.
function hintOf(element) {
  const title = element.querySelector(":scope > title");
  if (title) {
    element.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  return element.getAttribute("aria-label") ?? "";
}
