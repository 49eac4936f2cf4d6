// Messages that are held: a bar under the line of who holds them, from the arrival to the delivery.
// There are a few rows for them; what finds no place there is a thin line below.

const BRIEF = 60e3; // microseconds; shorter waits are not drawn
const STALE = 2e6;
const AIR = 20; // so far from the edge that it does not slip under it before the next step

class Waits {
  constructor(flow, rows) {
    this.flow = flow;
    this.open = new Map();
    this.rows = flow.names.map(() => Array(rows).fill(-Infinity));
  }

  begin(message, process, time) {
    if (!message.delivered.has(process)) this.open.set(`${message.key} ${process}`, { message, process, time });
  }

  end(message, process, time) {
    const wait = this.open.get(`${message.key} ${process}`);
    if (!wait) return;
    this.open.delete(`${message.key} ${process}`);
    if (time - wait.time >= BRIEF) this.draw(wait, time);
    if (wait.bar) this.leave(wait, time);
  }

  step({ now, every, members }) {
    for (const [key, wait] of this.open) {
      const { state, held } = members[wait.process];
      const number = Number(wait.message.key.split(":")[1]);
      const unknown = number % every !== 0 || (held === 0 && now - wait.time > STALE);
      if (unknown || state === "down" || state === "starting") this.drop(key, wait);
      else if (now - wait.time >= BRIEF) this.draw(wait, now);
    }
  }

  // Nobody will say any more when it ended.
  drop(key, wait) {
    this.open.delete(key);
    if (wait.bar) this.leave(wait, this.flow.now);
  }

  // The bar stays as it is, and goes with the paper.
  leave(wait, time) {
    if (wait.row !== null) this.rows[wait.process][wait.row] = time;
    this.flow.items.push({ element: wait.bar, until: time });
  }

  draw(wait, until) {
    const { flow } = this;
    wait.bar ??= this.bar(wait);
    const [bar, text] = wait.bar.children;
    const left = flow.x(wait.time);
    const width = flow.x(until) - left;
    bar.setAttribute("width", Math.max(width, 2).toFixed(1));
    if (wait.row === null) return;
    // Of a bar that began beyond the paper's edge, the name stays in sight.
    const start = Math.max(left + 4, flow.x(flow.first) + AIR);
    text.textContent = left + width - start > 4 + 6.5 * wait.message.key.length ? wait.message.key : "";
    text.setAttribute("x", start);
  }

  bar(wait) {
    const { flow, rows } = this;
    const own = rows[wait.process];
    const free = own.findIndex((end) => end + 3e4 < wait.time);
    wait.row = free < 0 ? null : free;
    if (wait.row !== null) own[wait.row] = Infinity;
    const y = flow.y(wait.process) + 6 + (wait.row ?? own.length) * 12;
    const kind = (wait.message.origin === wait.process ? " itself" : "") + (wait.row === null ? " crowd" : "");
    const looks = { class: `hold o${wait.message.origin % 8}${kind}`, "data-message": wait.message.key, "data-process": wait.process };
    const bar = made(SVG, "rect", { class: "bar", x: flow.x(wait.time), y, height: wait.row === null ? 4 : 10, rx: 2 });
    return flow.layers.holds.appendChild(made(SVG, "g", looks, bar, made(SVG, "text", { class: "label held", y: y + 8.5 })));
  }
}
