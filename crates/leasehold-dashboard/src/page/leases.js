// Who holds a lock, and who waits for it.

const holderOf = (lease) =>
  !lease.leasehold ? "something other than leasehold" : lease.pid === null ? lease.host : `pid ${lease.pid} on ${lease.host}`;

/** One lease of a lock: a line. */
class LeaseView {
  constructor() {
    this.holder = element("span", "holder");
    this.why = element("span", "why");
    this.age = element("span", "age");
    this.token = element("span", "token");
    this.copy = copyButton("Copy the token", this.token);
    this.copy.tabIndex = -1;
    this.countdown = new Countdown();
    this.node = element("div", "lease", this.holder, this.why, this.age, element("span", "tokens", this.token, this.copy), this.countdown.node);
  }

  show(lease, { marks, gone, lengths }, at) {
    const isGone = gone.includes(lease.token) && !marks;
    setText(this.holder, isGone ? `${holderOf(lease)}, whose process is gone` : holderOf(lease));
    this.holder.classList.toggle("gone", isGone);
    setText(this.why, lease.why ?? "");
    this.holder.title = this.holder.textContent;
    this.why.title = this.why.textContent;
    setText(this.token, lease.token === null ? "" : String(lease.token));
    this.copy.hidden = lease.token === null;
    this.since = lease.held_ms === null || marks ? null : at - lease.held_ms;
    this.showAge();
    this.countdown.node.classList.toggle("kept", Boolean(marks));
    this.countdown.endAt(lease.remaining_ms === null ? Infinity : at + lease.remaining_ms, lengths.get(lease.token));
  }

  showAge() {
    setText(this.age, this.since === null ? "" : duration(Math.max(0, Date.now() - this.since)));
  }

  tick() {
    this.showAge();
    this.countdown.tick();
  }
}

/** What a waiter asks for; nothing to say if it is the whole lock. */
const wanted = ({ mode, permits }) => (mode === "exclusive" ? "" : permits === 0 ? mode : permits === 1 ? "1 slot" : `${permits} slots`);

/** Who waits, why and for how long, as far as the store tells. */
function waiterOf(waiter) {
  const who = waiter.host === null ? null : holderOf(waiter);
  return { who, why: waiter.why ?? "", waiting: waiter.waiting_ms, what: wanted(waiter) };
}

/** Those who wait, in their order: neighbours of whom only the wish is known, and is the same, are one line. */
function waitersOf(queue) {
  const lines = [];
  for (const waiter of queue.map(waiterOf)) {
    const last = lines.at(-1);
    if (last && !waiter.who && !last.who && last.what === waiter.what) last.count += 1;
    else lines.push({ ...waiter, count: 1 });
  }
  return lines;
}

/** What waiters ask for in a few words; nothing if all want the whole lock. */
function wishesOf(queue) {
  const counts = new Map();
  queue.map(wanted).forEach((text) => counts.set(text, (counts.get(text) ?? 0) + 1));
  if (counts.size === 1 && counts.has("")) return "";
  return [...counts].map(([text, count]) => (count === 1 ? text || "exclusive" : `${text || "exclusive"} ×${count}`)).join(", ");
}

/** A line of those who wait. */
function waiterView() {
  const node = element("li", "", element("span", "holder"), element("span", "why"), element("span", "what"), element("span", "age"));
  return { node, parts: [...node.children] };
}

/** The command that ends a lease. */
const breaks = (name, token) => (name.startsWith("-") ? `leasehold break --token ${token} -- ${quoted(name)}` : `leasehold break ${quoted(name)} --token ${token}`);

/** What an open row shows below its lines. */
class Detail {
  constructor() {
    this.waiters = element("ol");
    this.waiting = element("div", "", element("h3", "", "In the queue"), this.waiters);
    this.breaks = element("ul");
    this.ending = element("div", "", element("h3", "", "To end a lease, in a shell"), this.breaks);
    this.node = element("div", "detail", this.waiting, this.ending);
    this.node.setAttribute("role", "cell");
    this.lines = new Map();
    this.commands = new Map();
  }

  show(lock, holders) {
    this.showWaiters(lock);
    const held = holders.filter(({ token }) => token !== null);
    this.commands = keyed(this.commands, held, ({ token }) => token, ({ token }) => {
      const code = element("code", "", breaks(lock.name, token));
      return element("li", "", code, copyButton("Copy the command", code));
    });
    arrange(this.breaks, [...this.commands.values()]);
    this.ending.hidden = held.length === 0 || Boolean(lock.marks);
  }

  showWaiters({ queue, waiters }) {
    const lines = waitersOf(queue);
    const more = waiters - queue.length;
    if (more > 0) lines.push({ who: lines.length ? `and ${more} more` : `${more} waiting`, why: "", waiting: null, what: null, count: 1 });
    const numbered = lines.map((line, index) => ({ ...line, index }));
    this.lines = keyed(this.lines, numbered, ({ index }) => index, waiterView);
    for (const { who, why, what, waiting, count, index } of numbered) {
      const { node, parts } = this.lines.get(index);
      node.classList.toggle("group", what === null || who === null);
      const unnamed = `${count} ${count === 1 ? "waiter" : "waiters"}`;
      const texts = [who ?? unnamed, why, what ?? "", waiting === null ? "" : `for ${duration(waiting)}`];
      parts.forEach((part, at) => setText(part, texts[at]));
    }
    arrange(this.waiters, [...this.lines.values()].map(({ node }) => node));
    this.waiting.hidden = waiters === 0;
  }
}
