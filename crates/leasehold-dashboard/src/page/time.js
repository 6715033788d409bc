// Times, and bars that shrink.

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

/** A duration in at most two units. */
function duration(ms) {
  const [days, hours, minutes] = [DAY, HOUR, MINUTE].map((unit) => Math.floor(ms / unit));
  if (days) return `${days} d ${hours % 24} h`;
  if (hours) return `${hours} h ${minutes % 60} min`;
  if (minutes >= 10) return `${minutes} min`;
  if (minutes) return `${minutes} min ${Math.floor(ms / SECOND) % 60} s`;
  return `${Math.floor(ms / SECOND)} s`;
}

const clock = (date) => date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

/** The zone of all times on the page, such as `UTC` or `GMT+2`. */
const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts(new Date()).find(({ type }) => type === "timeZoneName").value;

/** Lengths of full bars. A store tells what remains of a lease, not how long it lasts: it is as long as the next of these. */
const LENGTHS = [
  ...[1, 2, 3, 5, 10, 15, 20, 30, 45].map((seconds) => seconds * SECOND),
  ...[1, 1.5, 2, 3, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR),
];
const lengthFor = (ms) => LENGTHS.find((length) => ms <= length + SECOND / 4) ?? DAY * Math.ceil(ms / DAY);

/** Two ends that are this close are one: the looks at the store differ by a little. */
const SAME_END = 0.4 * SECOND;
/** A lease that is renewed in time, at a third of its ttl, keeps more than this part. */
const LOW = 0.3;
/** Above this part, a bar tells nothing. */
const HALF = 0.5;

/** What is shown in place of the remaining time of a lease that has none. */
let endless = "";

const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** What remains until an end: a bar that shrinks by itself, and a text. */
class Countdown {
  constructor() {
    this.fill = element("i");
    this.text = element("span");
    const bar = element("span", "bar", this.fill);
    bar.setAttribute("aria-hidden", "true");
    this.node = element("span", "left", bar, this.text);
    this.length = 0;
    this.seen = true;
  }

  /** It ends at this moment of `Date.now()`, `Infinity` if the lease has no remaining time; a full bar is at least this long. */
  endAt(end, length = 0) {
    if (Math.abs(end - this.end) < SAME_END || end === this.end) return;
    this.end = end;
    this.length = Math.max(this.length, length, lengthFor(end - Date.now()));
    this.restart();
  }

  /** It moves only while it can be seen: a thousand that move keep a browser busy. */
  see(seen) {
    if (seen === this.seen) return;
    this.seen = seen;
    this.restart();
  }

  restart() {
    const left = this.end - Date.now();
    this.motion?.cancel();
    this.motion = this.seen && this.end !== Infinity && left > 0 && !calm.matches ? this.shrink(left) : null;
    this.tick();
  }

  shrink(left) {
    const frames = [{ transform: `scaleX(${left / this.length})` }, { transform: "scaleX(0)" }];
    return this.fill.animate(frames, { duration: left, fill: "forwards" });
  }

  tick() {
    if (!this.seen) return;
    const left = Math.max(0, this.end - Date.now());
    const part = this.end === Infinity ? 1 : left / this.length;
    setText(this.text, this.end === Infinity ? endless : duration(left));
    this.node.classList.toggle("endless", this.end === Infinity);
    this.node.classList.toggle("low", part < LOW);
    this.node.classList.toggle("half", part < HALF);
    if (!this.motion) this.fill.style.transform = `scaleX(${part})`;
  }
}
