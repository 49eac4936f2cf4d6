// The talk with the server: what happens comes as server-sent events, what is wished goes as POST.

class Talk {
  constructor({ begin, step, verdicts, lost }) {
    this.source = new EventSource("events");
    const hear = (name, then) => this.source.addEventListener(name, (event) => then(JSON.parse(event.data)));
    hear("begin", begin);
    hear("step", step);
    hear("verdicts", (told) => {
      this.source.close();
      verdicts(told);
    });
    this.source.addEventListener("error", () => lost(this.source.readyState === EventSource.CLOSED));
  }

  // What is in the way, if anything is.
  async wish(act, process = null) {
    const headers = { "Content-Type": "application/json" };
    try {
      const answer = await fetch("act", { method: "POST", headers, body: JSON.stringify({ act, process }) });
      return (await answer.json()).error;
    } catch {
      return "The command cannot be reached any more.";
    }
  }
}
