// What is the matter with a process, behind its line: paused, cut off, down.

const SHADES = { paused: "paused", "cut off": "severed", down: "down" };

class Troubles {
  constructor(flow) {
    this.flow = flow;
  }

  // All of them anew: there are few.
  step(troubles) {
    const { flow } = this;
    const seen = troubles.filter(([, , , until]) => until === null || until > flow.first);
    flow.layers.troubles.replaceChildren(...seen.flatMap((trouble) => this.shade(...trouble)));
    flow.layers.signs.replaceChildren(...seen.flatMap((trouble) => this.signs(...trouble)));
  }

  shade(process, ill, since, until) {
    const { flow } = this;
    const y = flow.y(process);
    const [left, right] = [flow.x(since), until === null ? flow.x(flow.now) + flow.width : flow.x(until)];
    const looks = { class: `shade ${SHADES[ill]}`, x: left, y: y - flow.pitch * 0.4, width: Math.max(right - left, 1), height: flow.pitch - 2 };
    const shade = made(SVG, "rect", looks);
    if (ill !== "down") return [shade];
    const d = `M${left} ${y} H${right}`;
    return [shade, made(SVG, "path", { class: "silence", d }), made(SVG, "path", { class: "line down", d })];
  }

  signs(process, ill, since, until) {
    const { flow } = this;
    const [x, y] = [flow.x(since), flow.y(process)];
    const at = Math.max(x + 9, flow.x(flow.first) + AIR);
    const signs = [made(SVG, "text", { class: `ill ${SHADES[ill]}`, x: at, y: y - flow.pitch * 0.27 }, ill)];
    if (ill !== "down") return signs;
    signs.push(made(SVG, "g", { class: "mark crash", "data-process": process }, made(SVG, "path", { class: "cross", d: cross(x, y) })));
    if (until === null) return signs;
    const back = flow.x(until);
    const d = `M${back - 3} ${y - 6} L${back + 6} ${y} L${back - 3} ${y + 6} Z`;
    return [...signs, made(SVG, "g", { class: "mark recover", "data-process": process }, made(SVG, "path", { d }))];
  }
}

function cross(x, y) {
  return `M${x - 6} ${y - 6} L${x + 6} ${y + 6} M${x - 6} ${y + 6} L${x + 6} ${y - 6}`;
}
