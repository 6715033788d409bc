// Elements. Text is only ever set as text.

const byId = (id) => document.getElementById(id);

/** A new element with a class, a text and children. */
function element(tag, className, ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
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
