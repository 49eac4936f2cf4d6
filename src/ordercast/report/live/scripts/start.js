// The page comes alive.

const PHASES = {
  starting: "The processes are starting …",
  running: "Running. Pause, cut off or kill a process, and see what the others make of it.",
  finishing: "Nobody sends any more: the group is coming to rest …",
  judging: "The run is over, and its trace is being judged on Spark …",
};
const REMEMBERED = 200;
const $ = (selector) => document.querySelector(selector);
const cards = [...document.querySelectorAll(".member")];
const names = cards.map((card) => card.getAttribute("aria-label"));
const members = cards.map((card, index) => new Member(card, names[index]));
const flow = new Flow($(".paper"), names);
const groupActs = [...document.querySelectorAll(".group-acts button")];

const talk = new Talk({
  begin(step) {
    flow.clear();
    $("#happened").replaceChildren();
    hear(step);
  },
  step: hear,
  verdicts({ html, failure }) {
    flow.stopped = true;
    document.body.classList.add("over");
    say($("#phase"), failure ?? "The run is over. This page stays as it is; the command has ended.");
    if (!html) return;
    $("#verdict").innerHTML = html;
    $("#verdict").hidden = false;
    $("#verdict").focus();
  },
  lost(forGood) {
    say($("#phase"), forGood ? "The command has ended." : "The command does not answer; trying again …");
    if (forGood) document.body.classList.add("over");
  },
});

function hear(step) {
  say($("#phase"), PHASES[step.phase]);
  const finishing = step.phase !== "running";
  if (step.members.length) {
    flow.step(step);
    members.forEach((member, index) => member.step(step.members[index], step.now, { finishing }));
  }
  flow.stopped = step.phase === "judging";
  for (const button of groupActs) button.disabled = finishing;
  if (finishing) excuse(null);
  say($("#sampling"), step.every > 1 ? `Too many to draw: only each ${ordinal(step.every)} message is shown.` : "");
  for (const { at, what } of step.happened) {
    $("#happened").prepend(made(null, "li", {}, made(null, "time", {}, `${(at / 1e6).toFixed(1)} s`), what));
  }
  while ($("#happened").childElementCount > REMEMBERED) $("#happened").lastChild.remove();
}

function ordinal(number) {
  return number === 2 ? "second" : `${number}th`;
}

// Why a wish was not granted; for an unhappy finish there is a way out.
function excuse(sentence, act) {
  $("#trouble").hidden = sentence === null;
  say($("#trouble p"), sentence ?? "");
  $("#trouble [data-act]").hidden = act !== "finish";
  if (sentence !== null) $("#trouble button:not([hidden])").focus();
}

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("button");
  if (!button) return;
  if (button.matches(".dismiss")) return excuse(null);
  const { act } = button.dataset;
  const process = button.closest(".member")?.dataset.process;
  excuse(await talk.wish(act, process === undefined ? null : Number(process)), act);
});
