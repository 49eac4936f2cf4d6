// Every diagram of the page comes alive; without this script they are still there to be read.

const card = new Card();
const runs = new Map();
const drawings = [...document.querySelectorAll(".scroll[data-log]")].map((box) => {
  const { log } = box.dataset;
  if (!runs.has(log)) {
    const data = JSON.parse(document.getElementById(log).textContent);
    runs.set(log, { ...data, causality: new Causality(data.log) });
  }
  return new Drawing(box, runs.get(log));
});
const spoken = made(null, "output", { class: "spoken" });
document.body.append(spoken);

function light(drawing, shape) {
  if (!shape) return;
  drawing.choose(shape);
  for (const other of pairs(drawing)) if (other.run.causality.sends.has(shape.message)) other.choose(shape);
  if (!drawing.chosen) return;
  const { past, future, "": concurrent } = drawing.chosen.count();
  const what = shape.message ?? "This event";
  const before = `${past} message${past === 1 ? "" : "s"} in its past`;
  spoken.textContent = `${what}: ${before}, ${future} in its future, ${concurrent} concurrent. Escape clears.`;
}

function pairs(drawing) {
  const { pair } = drawing.box.dataset;
  return pair ? drawings.filter((one) => one !== drawing && one.box.dataset.pair === pair) : [];
}

// What is read side by side is scrolled side by side; whoever was moved so does not lead in turn.
const moved = new Map();

function lead(drawing) {
  const { box } = drawing;
  if (moved.get(box) === box.scrollLeft) return;
  moved.delete(box);
  const part = box.scrollLeft / Math.max(1, box.scrollWidth - box.clientWidth);
  for (const { box: other } of pairs(drawing)) {
    other.scrollLeft = part * (other.scrollWidth - other.clientWidth);
    moved.set(other, other.scrollLeft);
  }
}

function clear() {
  card.hide();
  spoken.textContent = "";
  for (const drawing of drawings) if (drawing.chosen) drawing.clear();
}

for (const drawing of drawings) {
  const { box } = drawing;
  const zoom = new Zoom(drawing);
  const touched = (event) => event.target.closest?.(".mark, .arrow, .hold");
  new Keys(drawing, { card, zoom, light });
  if (box.closest("figure.full")) new Toolbar(drawing, zoom);
  box.addEventListener("pointerover", (event) => {
    if (touched(event)) card.show(drawing, touched(event));
    else card.hide();
  });
  box.addEventListener("pointerleave", () => card.hide());
  box.addEventListener("scroll", () => (card.place(), lead(drawing)), { passive: true });
  box.addEventListener("click", (event) => {
    if (touched(event)) light(drawing, drawing.shapes.get(touched(event)));
    else clear();
  });
}
document.addEventListener("keydown", (event) => event.key === "Escape" && clear());
document.documentElement.classList.add("alive");
