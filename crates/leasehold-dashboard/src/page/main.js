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

function show(state) {
  const { store, pattern, held, trouble, age_ms } = state;
  const now = Date.now();
  endless = state.endless;
  setText(byId("store"), pattern === "*" ? store : `${store}  ${pattern}`);
  const waiting = state.locks.reduce((sum, lock) => sum + lock.waiters, 0);
  document.title = `${held} held${waiting ? `, ${waiting} waiting` : ""} · leasehold`;
  heldLocks = held;
  showLocks(state.locks, now - age_ms);
  showNodes(state.quorum, now);
  showHistory(state.history);
  byId("empty").hidden = held > 0 || age_ms === null;
  setText(byId("empty-title"), pattern === "*" ? "No lock is held" : `No held lock matches ${pattern}`);
  applyFilter();
  if (held > locks.size) setText(byId("count"), `${locks.size.toLocaleString()} of ${held.toLocaleString()}; start with a PATTERN to see others`);
  const seen = age_ms === null ? null : `${clock(new Date(now - age_ms))} ${zone}`;
  const shown = seen ? `What is shown was seen at ${seen}.` : "Nothing was seen yet.";
  showTrouble(trouble && `The store cannot be read, and is tried again. ${shown} The reason: ${trouble}`);
  showStatus(trouble ? "away" : "live", trouble ? (seen ? `as of ${seen}` : "away") : `live, ${seen}`);
}

/** Texts as they are shown; names stay as they are until they are shown, because commands name them. */
const told = (text) => JSON.parse(text, (key, value) => (typeof value === "string" && key !== "name" ? visible(value) : value));

let stream = null;
let again = null;

function disconnected() {
  showStatus("away", "no connection");
  showTrouble("The server of this page has ended, or refuses it. If it was started with `leasehold dashboard`, start it again.");
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
  stream = new EventSource(`${location.pathname.replace(/\/$/, "")}/events`);
  stream.onmessage = (message) => show(told(message.data));
  stream.onerror = disconnected;
}

setText(byId("zone"), `times in ${zone}`);
showTab("locks");
document.addEventListener("visibilitychange", connect);
setInterval(() => [...locks.values(), ...nodes.values()].forEach((view) => view.tick()), SECOND);
connect();
