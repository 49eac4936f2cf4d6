// A card for each process: how it is, what it has done, what it holds and why, and its buttons.

const WORDS = { pause: "Pause", resume: "Resume", cut: "Cut off", reconnect: "Reconnect", kill: "Kill", restart: "Restart" };
const LOOKS = { running: "holds", paused: "unknown", down: "violated", starting: "quiet" };
const WORTH_TELLING = 250e3; // microseconds
const LINES = 3;
const RATE_OVER = 2e6;

class Member {
  constructor(card, name) {
    this.card = card;
    this.name = name;
    this.process = Number(card.dataset.process);
    this.history = [];
    this.buttons = [...card.querySelectorAll("button")];
  }

  step(look, now, { finishing }) {
    const { state, cut } = look;
    this.card.classList.toggle("down", state === "down");
    const badge = this.card.querySelector(".state");
    say(badge, state);
    badge.className = `badge ${LOOKS[state]} state`;
    this.card.querySelector(".severed").hidden = !cut;
    this.suspicions(look.suspected_by);
    this.counts(look, now);
    this.why(look, now);
    const undo = { pause: state === "paused", cut, kill: state === "down" };
    const idle = { pause: state === "down" || state === "starting", cut: false, kill: state === "starting" };
    for (const button of this.buttons) {
      const [does, undoes] = button.dataset.pair.split(" ");
      const act = undo[does] ? undoes : does;
      button.dataset.act = act;
      say(button, WORDS[act]);
      button.setAttribute("aria-label", `${WORDS[act]} ${this.name}`);
      button.classList.toggle("again", act === undoes);
      button.disabled = finishing || idle[does];
    }
  }

  suspicions(names) {
    const line = this.card.querySelector(".suspected");
    say(line, names.length ? `suspected by ${names.map((process) => `p${process}`).join(", ")}` : "");
  }

  counts(look, now) {
    this.history.push({ now, sent: look.sent, delivered: look.delivered });
    while (now - this.history[0].now > RATE_OVER) this.history.shift();
    const shown = {
      sent: count(look.sent),
      delivered: count(look.delivered),
      held: count(look.held),
      stable: `${count(look.stable)} of ${count(look.bundles)}`,
      sending: `${this.rate("sent")}/s`,
      delivering: `${this.rate("delivered")}/s`,
    };
    for (const cell of this.card.querySelectorAll("[data-count]")) say(cell, shown[cell.dataset.count]);
    this.card.querySelector("[data-count=held]").classList.toggle("many", look.held > 0);
  }

  rate(what) {
    const [first, last] = [this.history[0], this.history.at(-1)];
    const seconds = (last.now - first.now) / 1e6;
    const rate = seconds > 0.5 ? Math.max(0, last[what] - first[what]) / seconds : 0;
    return rate < 10 ? rate.toFixed(1) : count(Math.round(rate));
  }

  // Only what has waited for so long that it can be read.
  why({ holds, held }, now) {
    const long = holds.filter((hold) => now - hold.since > WORTH_TELLING);
    const lines = long.slice(0, LINES).map(({ what, why, since }) => {
      const seconds = (now - since) / 1e6;
      const line = made(null, "li", seconds > 1 ? { class: "long" } : {}, made(null, "b", {}, what), ` ${why} · ${seconds.toFixed(1)} s`);
      return line;
    });
    const more = held - lines.length;
    if (long.length > LINES && more > 0) lines.push(made(null, "li", {}, `… and ${count(more)} more`));
    if (lines.length === 0) lines.push(made(null, "li", { class: "none" }, "holds nothing for long"));
    this.card.querySelector(".why").replaceChildren(...lines);
  }
}

function count(number) {
  return number.toLocaleString("en");
}

// Untouched if it is the same, so that nobody is told twice.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
