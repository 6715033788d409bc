// The locks that are held.

/** How many holders of a lock are shown until somebody asks for all. */
const HOLDERS_SHOWN = 4;

const holderOf = (lease) =>
  !lease.leasehold ? "something other than leasehold" : lease.pid === null ? lease.host : `pid ${lease.pid} on ${lease.host}`;

/** What a lock is used as, and what more there is to say of that. */
function kindOf(lock) {
  if (lock.marks) return ["schedule", "slot"];
  if (!lock.leasehold) return ["other", ""];
  if (lock.kind === "semaphore") {
    const taken = lock.holders.reduce((sum, lease) => sum + lease.slots.length, 0);
    return ["semaphore", lock.leases > lock.holders.length ? `of ${lock.limit}` : `${taken} of ${lock.limit} slots`];
  }
  if (lock.holders.some((lease) => lease.mode === "shared")) return ["readers", `${lock.leases} now`];
  return ["lock", ""];
}

const wanted = ({ mode, permits }) => (permits === 0 ? mode : permits === 1 ? "1 slot" : `${permits} slots`);

/** What the waiters ask for, in their order: neighbours that ask for the same are one group. */
function queueOf(lock) {
  const groups = [];
  for (const text of lock.queue.map(wanted)) {
    const last = groups.at(-1);
    if (last?.text === text) last.count += 1;
    else groups.push({ text, count: 1 });
  }
  const more = lock.queue.length < lock.waiters && groups.length ? ", …" : "";
  return groups.map(({ text, count }) => (count === 1 ? text : `${text} ×${count}`)).join(", ") + more;
}

/** One lease of a lock. */
class LeaseView {
  constructor() {
    this.holder = element("span", "holder");
    this.token = element("span", "token");
    this.age = element("small", "age");
    this.countdown = new Countdown();
    this.node = element("div", "lease", this.holder, element("span", "", this.token, this.age), this.countdown.node);
  }

  show(lease, lock, at) {
    const gone = lease.gone && !lock.marks ? "its process is gone" : "";
    const why = lease.why && lock.leases > 1 ? lease.why : "";
    const text = [holderOf(lease), gone, why].join("\n");
    if (text !== this.text) {
      const parts = [gone && element("span", "gone", gone), why && element("small", "", why)].filter(Boolean);
      this.holder.replaceChildren(holderOf(lease), ...parts.flatMap((part) => [" ", part]));
      this.text = text;
    }
    setText(this.token, lease.token === null ? "" : String(lease.token));
    this.since = lease.held_ms === null || lock.marks ? null : at - lease.held_ms;
    this.showAge();
    this.countdown.node.classList.toggle("kept", Boolean(lock.marks));
    this.countdown.endAt(lease.remaining_ms === null ? Infinity : at + lease.remaining_ms);
  }

  showAge() {
    setText(this.age, this.since === null ? "" : `held ${duration(Math.max(0, Date.now() - this.since))}`);
  }

  tick() {
    this.showAge();
    this.countdown.tick();
  }
}

/** One lock: a row of the table. */
class LockView {
  constructor(lock) {
    this.why = element("div", "why");
    this.kind = element("div", "kind");
    this.leases = element("div", "leases");
    this.more = element("button", "more");
    this.more.type = "button";
    this.more.tabIndex = -1;
    this.more.addEventListener("click", () => this.toggle());
    this.waiters = element("div", "waiters");
    this.queue = element("div", "queue");
    this.queueCell = element("div", "queue-cell", this.waiters, this.queue);
    const cells = [element("div", "", element("div", "name", lock.name), this.why), this.kind, this.leases, this.queueCell];
    cells.forEach((cell) => cell.setAttribute("role", "cell"));
    this.node = element("div", "row", ...cells);
    this.node.setAttribute("role", "row");
    this.node.tabIndex = -1;
    this.inView = !("oncontentvisibilityautostatechange" in this.node);
    this.node.addEventListener("contentvisibilityautostatechange", ({ skipped }) => {
      this.inView = !skipped;
      this.follow();
    });
    this.views = new Map();
    this.all = false;
  }

  /** Whether it can be seen, as far as the browser tells. */
  get seen() {
    return this.inView && !this.node.hidden;
  }

  follow() {
    this.views.forEach((view) => view.countdown.see(this.seen));
  }

  show(lock, at) {
    this.lock = lock;
    this.at = at;
    const [kind, detail] = kindOf(lock);
    const [waiters, queue] = [lock.waiters ? `${lock.waiters} waiting` : "–", queueOf(lock)];
    setText(this.why, lock.leases > 1 ? "" : (lock.why ?? ""));
    if (this.kind.dataset.kind !== kind || this.detail !== detail) {
      this.kind.replaceChildren(kind, ...(detail ? [" ", element("small", "", detail)] : []));
      [this.kind.dataset.kind, this.detail] = [kind, detail];
    }
    setText(this.waiters, waiters);
    setText(this.queue, queue);
    [this.waiters, this.queueCell].forEach((cell) => setAttribute(cell, "data-none", lock.waiters ? null : ""));
    this.words = [lock.name, kind, detail, ...lock.holders.flatMap((lease) => [holderOf(lease), lease.why ?? "", String(lease.token ?? "")])]
      .join("\n")
      .toLowerCase();
    this.showLeases();
  }

  showLeases() {
    const { leases } = this.lock;
    // In this order, no lease changes its place when it is renewed.
    const holders = this.lock.holders.toSorted((one, other) => one.token - other.token);
    const shown = this.all ? holders : holders.slice(0, HOLDERS_SHOWN);
    this.views = keyed(this.views, shown, (lease) => lease.token, () => new LeaseView());
    shown.forEach((lease) => this.views.get(lease.token).show(lease, this.lock, this.at));
    this.follow();
    const hidden = leases - shown.length;
    setText(this.more, hidden > 0 ? `and ${hidden} more` : "fewer");
    this.more.disabled = holders.length <= HOLDERS_SHOWN;
    const more = hidden > 0 || holders.length > HOLDERS_SHOWN ? [this.more] : [];
    arrange(this.leases, [...[...this.views.values()].map((view) => view.node), ...more]);
  }

  toggle() {
    this.all = !this.all;
    this.showLeases();
  }

  /** Hides it unless it has all these words. */
  filter(words) {
    this.node.hidden = !words.every((word) => this.words.includes(word));
    this.follow();
  }

  tick() {
    if (this.seen) this.views.forEach((view) => view.tick());
  }
}

let locks = new Map();

/** Shows these locks, which were seen at this moment of `Date.now()`. */
function showLocks(shown, at) {
  locks = keyed(locks, shown, (lock) => lock.name, (lock) => new LockView(lock));
  shown.forEach((lock) => locks.get(lock.name).show(lock, at));
  arrange(byId("rows"), [...locks.values()].map((view) => view.node));
}
