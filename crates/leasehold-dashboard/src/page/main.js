// What the server tells, and whether it does.

/** After this long, a stream that the server refused is asked for again. */
const AGAIN_AFTER = 5 * SECOND;

function showStatus(state, text) {
  byId("status").dataset.state = state;
  setText(byId("status"), text);
}

function showTrouble(text) {
  setText(byId("trouble"), text);
  byId("trouble").hidden = !text;
  document.body.classList.toggle("stale", Boolean(text));
}

function showFigures({ held, locks }) {
  const sum = (count) => locks.reduce((sum, lock) => sum + count(lock), 0).toLocaleString();
  setText(byId("held"), held.toLocaleString());
  setText(byId("leases"), sum((lock) => lock.leases));
  setText(byId("waiting"), sum((lock) => lock.waiters));
}

function show(state) {
  const { store, pattern, held, trouble } = state;
  const now = Date.now();
  endless = state.endless;
  setText(byId("store"), pattern === "*" ? store : `${store}  ${pattern}`);
  document.title = `${held} held · leasehold`;
  showFigures(state);
  showLocks(state.locks, now - state.age_ms);
  showNodes(state.quorum, now);
  showHistory(state.history);
  byId("table").hidden = held === 0;
  byId("empty").hidden = held > 0;
  setText(byId("empty-title"), pattern === "*" ? "No lock is held" : `No held lock matches ${pattern}`);
  applyFilter();
  if (held > locks.size) setText(byId("count"), `the first ${locks.size.toLocaleString()}; start with a PATTERN to see others`);
  const seen = clock(new Date(now - state.age_ms));
  showTrouble(trouble && `The store cannot be read, and is tried again. What is shown was seen at ${seen}. The reason: ${trouble}`);
  showStatus(trouble ? "away" : "live", trouble ? `as of ${seen}` : `live, ${seen}`);
}

let stream = null;
let again = null;

function disconnected() {
  showStatus("away", "no connection");
  showTrouble("The dashboard has ended or refuses this page. To start it again, run: leasehold dashboard");
  if (stream?.readyState === EventSource.CLOSED) {
    clearTimeout(again);
    again = setTimeout(connect, AGAIN_AFTER);
  }
}

/** Connects while the page is visible. A hidden page asks for nothing, so that the store is left alone. */
function connect() {
  stream?.close();
  clearTimeout(again);
  stream = null;
  if (document.hidden) return showStatus("waiting", "paused");
  stream = new EventSource("events");
  stream.onmessage = (message) => show(JSON.parse(message.data, (key, value) => (typeof value === "string" ? visible(value) : value)));
  stream.onerror = disconnected;
}

document.addEventListener("visibilitychange", connect);
setInterval(() => [...locks.values(), ...nodes.values()].forEach((view) => view.tick()), SECOND);
connect();
