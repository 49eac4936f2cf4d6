// Who happened before whom, from sends and first deliveries alone: the past of an event is, at each
// process, everything up to some position, and its future everything from some position on.

class Causality {
  // log: for each process [process, kinds ("s" or "d" each), positions, origins, numbers]
  constructor(log) {
    this.logs = new Map();
    this.sends = new Map();
    this.deliveries = new Map();
    for (const [process, kinds, positions, origins, numbers] of log) {
      const rows = [];
      for (let index = 0; index < kinds.length; index++) {
        const row = { process, position: positions[index], message: `${origins[index]}:${numbers[index]}` };
        row.isSend = kinds[index] === "s";
        rows.push(row);
        if (row.isSend) this.sends.set(row.message, row);
        else if (this.deliveries.has(row.message)) this.deliveries.get(row.message).push(row);
        else this.deliveries.set(row.message, [row]);
      }
      this.logs.set(process, rows);
    }
  }

  delivered(message, process) {
    const row = (this.deliveries.get(message) ?? []).find((row) => row.process === process);
    return row?.position;
  }

  // At each process the last position in the past of an event, itself included.
  past(process, position) {
    const reached = new Map();
    const looked = new Map();
    const open = [[process, position]];
    while (open.length) {
      const [where, until] = open.pop();
      if ((reached.get(where) ?? -1) >= until) continue;
      reached.set(where, until);
      const rows = this.logs.get(where) ?? [];
      let index = looked.get(where) ?? 0;
      for (; index < rows.length && rows[index].position <= until; index++) {
        const send = rows[index].isSend ? null : this.sends.get(rows[index].message);
        if (send) open.push([send.process, send.position]);
      }
      looked.set(where, index);
    }
    return reached;
  }

  // At each process the first position in the future of an event, itself included.
  future(process, position) {
    const reached = new Map();
    const looked = new Map();
    const open = [[process, position]];
    while (open.length) {
      const [where, from] = open.pop();
      if ((reached.get(where) ?? Infinity) <= from) continue;
      reached.set(where, from);
      const rows = this.logs.get(where) ?? [];
      let index = looked.get(where) ?? rows.length - 1;
      for (; index >= 0 && rows[index].position >= from; index--) {
        if (!rows[index].isSend) continue;
        for (const row of this.deliveries.get(rows[index].message) ?? []) open.push([row.process, row.position]);
      }
      looked.set(where, index);
    }
    return reached;
  }

  cone(process, position) {
    return new Cone(this, process, position);
  }
}

class Cone {
  constructor(causality, process, position) {
    this.causality = causality;
    this.process = process;
    this.position = position;
    this.past = causality.past(process, position);
    this.future = causality.future(process, position);
  }

  // "past", "future", "self", or "" for what is concurrent.
  side(process, position) {
    if (process === this.process && position === this.position) return "self";
    if (position <= (this.past.get(process) ?? -1)) return "past";
    return position >= (this.future.get(process) ?? Infinity) ? "future" : "";
  }

  sideOfMessage(message) {
    const send = this.causality.sends.get(message);
    return send ? this.side(send.process, send.position) : "";
  }

  // A copy of a message is on the way of cause and effect if its delivery is in the past, or its
  // send is the event itself or after it.
  sideOfCopy(message, process) {
    const sent = this.sideOfMessage(message);
    if (sent === "self" || sent === "future") return "future";
    const delivered = this.causality.delivered(message, process);
    return delivered !== undefined && delivered <= (this.past.get(process) ?? -1) ? "past" : "";
  }

  count() {
    const counts = { past: 0, future: 0, self: 0, "": 0 };
    for (const message of this.causality.sends.keys()) counts[this.sideOfMessage(message)]++;
    return counts;
  }
}
