// Elements. Text is only ever set as text.

const byId = (id) => document.getElementById(id);

/** A new element with a class, a text and children. */
function element(tag, className, ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
}

/** Characters that are not drawn, or that change the order of others: `visible.rs` has the same. */
const HIDDEN = /[\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{3164}\u{fe00}-\u{fe0f}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u;

/** Those, and the backslashes before what looks like one that is written out. */
const MISTAKEN = new RegExp(`\\\\+(?=u\\{|${HIDDEN.source})|${HIDDEN.source}`, "gu");

/** The text, in which nothing is hidden. No two texts look the same. */
function visible(text) {
  return text.replace(MISTAKEN, (found) => (found.startsWith("\\") ? found + found : `\\u{${found.codePointAt(0).toString(16)}}`));
}

const ESCAPED = new RegExp(HIDDEN.source, "gu");

/** One argument of a command in a shell. What is hidden is written with its number, so that the command shows what it does. */
function quoted(argument) {
  if (/^[\w.:@%+,/=-]+$/.test(argument)) return argument;
  if (!HIDDEN.test(argument)) return `'${argument.replaceAll("'", "'\\''")}'`;
  const number = (letter) => `\\U${letter.codePointAt(0).toString(16).padStart(8, "0")}`;
  return `$'${argument.replace(/[\\']/g, "\\$&").replace(ESCAPED, number)}'`;
}

/** A button that copies a text; where a page may not copy, it selects `code`, which shows the text. */
function copyButton(label, code) {
  const button = element("button", "copy", "copy");
  button.type = "button";
  button.title = button.ariaLabel = label;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      setText(button, "copied");
      setTimeout(() => setText(button, "copy"), 1500);
    } catch {
      getSelection().selectAllChildren(code);
    }
  });
  return button;
}

/** Sets a text unless it is there, so that nothing is drawn again. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets an attribute; `null` removes it. */
function setAttribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/** Brings the children of `parent` into this order, and removes all others. What stays is not moved, so it keeps the focus. */
function arrange(parent, wanted) {
  const kept = new Set(wanted);
  [...parent.children].filter((child) => !kept.has(child)).forEach((child) => child.remove());
  let next = parent.firstElementChild;
  for (const child of wanted) {
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
}

/** The view of each item: the one of its key, or a new one. Views of other keys are forgotten. */
function keyed(views, items, key, make) {
  const kept = new Map();
  for (const item of items) kept.set(key(item), views.get(key(item)) ?? make(item));
  return kept;
}
