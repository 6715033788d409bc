// The locks that are held.

/** How many holders of a lock are shown until its row is open. */
const HOLDERS_SHOWN = 4;

/** What a lock is used as, and what more there is to say of that. A plain lock says nothing. */
function kindOf(lock) {
  if (lock.marks) return ["schedule", "slot"];
  if (!lock.leasehold) return ["other", ""];
  if (lock.kind === "semaphore") {
    const taken = lock.holders.reduce((sum, lease) => sum + lease.slots.length, 0);
    return ["semaphore", lock.leases > lock.holders.length ? `of ${lock.limit}` : `${taken} of ${lock.limit} slots`];
  }
  if (lock.holders.some((lease) => lease.mode === "shared")) return ["readers", String(lock.leases)];
  const { held, not_held, abstaining, unreachable } = lock.votes ?? {};
  if (!held) return ["lock", ""];
  const all = held.length + not_held.length + abstaining.length + unreachable.length;
  return ["lock", `${2 * held.length > all ? "" : "possibly held, "}${held.length} of ${all} nodes`];
}

/** One lock: a row of the table. */
class LockView {
  constructor(lock) {
    this.shownName = visible(lock.name);
    this.kind = element("span", "kind");
    this.opener = element("button", "opener", element("span", "unseen", "Details"));
    this.opener.type = "button";
    this.opener.tabIndex = -1;
    this.name = element("span", "name", this.shownName);
    this.leases = element("div", "leases");
    this.more = element("button", "more");
    this.more.type = "button";
    this.more.tabIndex = -1;
    this.waiters = element("span", "waiters");
    this.wishes = element("small", "wishes");
    this.queueCell = element("div", "queue-cell", this.waiters, " ", this.wishes);
    const cells = [element("div", "lock", this.opener, element("span", "title", this.name, " ", this.kind)), this.leases, this.queueCell];
    cells.forEach((cell) => cell.setAttribute("role", "cell"));
    this.node = element("div", "row", ...cells);
    this.node.setAttribute("role", "row");
    this.node.tabIndex = -1;
    this.node.addEventListener("click", ({ target }) => this.click(target));
    this.inView = !("oncontentvisibilityautostatechange" in this.node);
    this.node.addEventListener("contentvisibilityautostatechange", ({ skipped }) => {
      this.inView = !skipped;
      this.follow();
    });
    this.views = new Map();
    this.lengths = new Map();
    this.open = false;
    setAttribute(this.opener, "aria-expanded", "false");
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
    this.kind.hidden = kind === "lock";
    setText(this.kind, [kind, detail].join(" ").trim());
    this.kind.dataset.kind = kind;
    setText(this.waiters, lock.waiters ? `${lock.waiters} waiting` : "–");
    setText(this.wishes, wishesOf(lock.queue));
    [this.waiters, this.queueCell].forEach((cell) => setAttribute(cell, "data-none", lock.waiters ? null : ""));
    this.words = [this.shownName, kind, detail, ...lock.holders.flatMap((lease) => [holderOf(lease), lease.why ?? "", String(lease.token ?? "")])]
      .join("\n")
      .toLowerCase();
    this.rank();
    this.showLeases();
  }

  /** How old its oldest lease is, and what part is left of the one that is renewed last. */
  rank() {
    const { holders, marks } = this.lock;
    const lengths = new Map();
    holders.forEach(({ token, remaining_ms }) => lengths.set(token, Math.max(this.lengths.get(token) ?? 0, lengthFor(remaining_ms ?? 0))));
    this.lengths = lengths;
    this.age = marks ? -1 : Math.max(-1, ...holders.map(({ held_ms }) => held_ms ?? -1));
    const part = ({ token, remaining_ms }) => (remaining_ms === null || marks ? Infinity : remaining_ms / lengths.get(token));
    this.part = Math.min(Infinity, ...holders.map(part));
  }

  showLeases() {
    const { leases, gone, marks } = this.lock;
    // In this order, no lease changes its place when it is renewed.
    const holders = this.lock.holders.toSorted((one, other) => one.token - other.token);
    const shown = this.open ? holders : holders.slice(0, HOLDERS_SHOWN);
    this.views = keyed(this.views, shown, (lease) => lease.token, () => new LeaseView());
    shown.forEach((lease) => this.views.get(lease.token).show(lease, { marks, gone, lengths: this.lengths }, this.at));
    this.follow();
    const hidden = leases - shown.length;
    setText(this.more, `and ${hidden} more`);
    this.more.disabled = this.open;
    arrange(this.leases, [...[...this.views.values()].map((view) => view.node), ...(hidden > 0 ? [this.more] : [])]);
    if (this.open) this.detail.show(this.lock, holders);
  }

  /** A click opens or closes it, unless it is on what can be copied, or ends the selection of a text. */
  click(target) {
    const inside = target.closest(".detail, .copy");
    if (!inside && getSelection().isCollapsed) this.toggle();
  }

  toggle() {
    this.open = !this.open;
    this.detail ??= new Detail();
    if (this.open) this.node.append(this.detail.node);
    else this.detail.node.remove();
    this.node.classList.toggle("open", this.open);
    setAttribute(this.opener, "aria-expanded", String(this.open));
    this.showLeases();
  }

  tick() {
    if (this.seen) this.views.forEach((view) => view.tick());
  }
}

let locks = new Map();
/** How many are held, which may be more than are told. */
let heldLocks = 0;

/** Shows these locks, which were seen at this moment of `Date.now()`. */
function showLocks(shown, at) {
  locks = keyed(locks, shown, (lock) => lock.name, (lock) => new LockView(lock));
  shown.forEach((lock) => locks.get(lock.name).show(lock, at));
  arrangeLocks();
}

/** Brings the rows into their order. What is moved keeps the focus. */
function arrangeLocks() {
  const focused = document.activeElement;
  const views = [...locks.values()].sort(order.compare);
  locks = new Map(views.map((view) => [view.lock.name, view]));
  arrange(byId("rows"), views.map((view) => view.node));
  if (focused !== document.activeElement && byId("rows").contains(focused)) focused.focus({ preventScroll: true });
}
