// The nodes of a quorum, and what has happened.

/** One node. */
class NodeView {
  constructor(node) {
    this.state = element("span", "state");
    this.note = element("small");
    this.dwell = new Countdown();
    this.node = element("li", "", element("span", "address", node.node), this.state, this.dwell.node, this.note);
  }

  show(node, at) {
    const waits = Boolean(node.votes_in_ms);
    const nobody = { abstains: "abstains until a client connects", restarted: "restarted, waits for a client", empty: "empty, waits for a client" };
    setText(this.state, waits ? `${node.state}, votes within` : (nobody[node.state] ?? node.state));
    this.state.dataset.state = node.state;
    this.dwell.node.hidden = !waits;
    if (waits) this.dwell.endAt(at + node.votes_in_ms);
    setText(this.note, node.error ?? (node.evicts ? `may drop locks: ${node.evicts}` : ""));
  }

  tick() {
    if (!this.dwell.node.hidden) this.dwell.tick();
  }
}

let nodes = new Map();

/** Shows the nodes of a quorum, if there are any. */
function showNodes(quorum, at) {
  byId("nodes").hidden = byId("voting-figure").hidden = !quorum;
  if (!quorum) return;
  const { voting, majority, spare, can_grant } = quorum;
  const fail = spare === 0 ? "none may fail" : `${spare} more may fail`;
  setText(byId("voting"), `${voting} of ${quorum.nodes.length}`);
  setText(byId("verdict"), can_grant ? `Locks can be granted: ${majority} votes are needed, ${fail}.` : `No lock can be granted now: ${majority} votes are needed.`);
  nodes = keyed(nodes, quorum.nodes, (node) => node.node, (node) => new NodeView(node));
  quorum.nodes.forEach((node) => nodes.get(node.node).show(node, at));
  arrange(byId("node-list"), [...nodes.values()].map((view) => view.node));
}

/** What is said of an event beside the name. */
function detailOf({ event, lease, by, joined, waiters }) {
  if (event === "queued") return `${joined} more, ${waiters} waiting`;
  const token = lease.token === null ? "" : `, token ${lease.token}`;
  return holderOf(lease) + token + (by ? `, broken by ${by}` : "");
}

/** One event. A click on its name filters to that lock. */
class EventView {
  constructor(event) {
    this.shownName = visible(event.name);
    const at = new Date(event.time);
    const time = element("time", "", clock(at));
    time.dateTime = event.time;
    time.title = at.toString();
    const word = element("span", "event", event.event);
    word.dataset.event = event.event;
    const name = element("button", "name", this.shownName);
    name.type = "button";
    name.title = "Show this lock alone";
    name.addEventListener("click", () => {
      showTab("locks");
      changeFilter(`=${this.shownName}`);
    });
    const [why, detail] = [event.lease?.why ?? "", detailOf(event)];
    this.node = element("li", "", time, word, name, element("span", "who", detail, why && element("span", "why", why)));
    this.words = [this.shownName, event.event, why, detail].join("\n").toLowerCase();
  }
}

let events = new Map();

/** Shows what has happened, the latest event first. */
function showHistory(history) {
  const key = ({ time, event, name, lease }) => [time, event, name, lease?.token].join(" ");
  events = keyed(events, history, key, (event) => new EventView(event));
  arrange(byId("history"), [...events.values()].map((view) => view.node));
}

function showHistoryCount() {
  const shown = [...events.values()].filter(({ node }) => !node.hidden).length;
  byId("no-history").hidden = shown > 0;
  setText(byId("no-history"), events.size ? "Nothing of what happened matches the filter." : "What happens while this page is open is listed here.");
  setText(byId("tab-count"), shown ? shown.toLocaleString() : "");
}
