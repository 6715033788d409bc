// Which locks are shown, and in which order. Both are in the address, so that a link or a reload keeps them.

const collator = new Intl.Collator(undefined, { numeric: true });
const byName = (one, other) => collator.compare(one.shownName, other.shownName);
const isLate = ({ part }) => part < LOW;

/** The orders by what they put first. */
const ORDERS = {
  waiting: (one, other) => other.lock.waiters - one.lock.waiters || isLate(other) - isLate(one) || byName(one, other),
  oldest: (one, other) => other.age - one.age || byName(one, other),
  late: (one, other) => (one.part === other.part ? 0 : one.part - other.part) || byName(one, other),
  name: byName,
};

const filter = byId("filter");
const address = new URLSearchParams(location.search);
const order = { by: Object.hasOwn(ORDERS, address.get("sort")) ? address.get("sort") : "waiting", compare: (one, other) => ORDERS[order.by](one, other) };
filter.value = address.get("filter") ?? "";

function writeAddress() {
  const asked = new URLSearchParams();
  if (filter.value) asked.set("filter", filter.value);
  if (order.by !== "waiting") asked.set("sort", order.by);
  const query = asked.size ? `?${asked}` : "";
  if (query !== location.search) history.replaceState(null, "", location.pathname + query);
}

/** What the filter lets through: all words of a text, or after `=` exactly the lock of this name. */
function passing() {
  if (filter.value.startsWith("=")) {
    const name = filter.value.slice(1);
    return (shownName) => shownName === name;
  }
  const all = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  return (_, words) => all.every((word) => words.includes(word));
}

const shownViews = () => [...locks.values()].filter(({ node }) => !node.hidden);

/** Hides what the filter does not let through. */
function applyFilter() {
  const passes = passing();
  [...locks.values(), ...events.values()].forEach((view) => (view.node.hidden = !passes(view.shownName, view.words)));
  locks.forEach((view) => view.follow());
  const shown = shownViews();
  const [some, all] = [shown.length, locks.size].map((count) => count.toLocaleString());
  setText(byId("count"), filter.value ? (shown.length ? `${some} of ${all}` : `no lock matches, of ${all}`) : "");
  byId("none").hidden = shown.length > 0 || locks.size === 0;
  byId("table").hidden = shown.length === 0;
  setText(byId("none-title"), filter.value.startsWith("=") ? `No lock is held with the name ${filter.value.slice(1)}` : `No lock matches ${filter.value}`);
  showFigures(shown);
  showChips(shown);
  showHistoryCount();
  keepOneTabStop();
}

function showFigures(shown) {
  setText(byId("held"), (filter.value ? shown.length : heldLocks).toLocaleString());
  const sum = (count) => shown.reduce((sum, view) => sum + count(view.lock), 0).toLocaleString();
  setText(byId("leases"), sum((lock) => lock.leases));
  setText(byId("waiting"), sum((lock) => lock.waiters));
}

/** How many locks each order puts first. */
function showChips(shown) {
  const counts = { waiting: shown.filter(({ lock }) => lock.waiters > 0).length, late: shown.filter(isLate).length };
  for (const [by, count] of Object.entries(counts)) setText(byId(`count-${by}`), count ? count.toLocaleString() : "");
}

function changeFilter(text) {
  filter.value = text;
  filterChanged();
}

function filterChanged() {
  applyFilter();
  writeAddress();
}

function leaveFilter() {
  changeFilter("");
  filter.blur();
}

document.getElementsByName("sort").forEach((chip) => {
  chip.checked = chip.value === order.by;
  chip.addEventListener("change", () => {
    order.by = chip.value;
    arrangeLocks();
    keepOneTabStop();
    writeAddress();
  });
});
filter.addEventListener("input", filterChanged);
byId("clear").addEventListener("click", leaveFilter);
