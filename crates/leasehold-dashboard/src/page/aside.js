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

function eventView(event) {
  const word = element("span", "event", event.event);
  word.dataset.event = event.event;
  const time = element("time", "", clock(new Date(event.time)));
  time.dateTime = event.time;
  return element("li", "", time, word, element("span", "name", event.name), element("span", "who", detailOf(event)));
}

let events = new Map();

/** Shows what has happened, the latest event first. */
function showHistory(history) {
  const key = ({ time, event, name, lease }) => [time, event, name, lease?.token].join(" ");
  events = keyed(events, history, key, eventView);
  arrange(byId("history"), [...events.values()]);
  byId("no-history").hidden = history.length > 0;
}
