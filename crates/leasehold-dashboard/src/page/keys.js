// The keyboard, the tabs of a narrow screen, and light or dark.

const shownRows = () => shownViews().map((view) => view.node);

/** The tab key reaches one row, and j and k lead to the others. */
function keepOneTabStop() {
  const rows = shownRows();
  const current = rows.find((row) => row.tabIndex === 0) ?? rows[0];
  locks.forEach(({ node }) => (node.tabIndex = node === current ? 0 : -1));
}

function moveFocus(step) {
  const rows = shownRows();
  const from = rows.indexOf(document.activeElement);
  const row = rows[from < 0 ? rows.findIndex((row) => row.tabIndex === 0) : Math.min(Math.max(from + step, 0), rows.length - 1)];
  if (!row) return;
  locks.forEach(({ node }) => (node.tabIndex = -1));
  row.tabIndex = 0;
  row.focus();
}

/** Which of the two is seen on a narrow screen. */
function showTab(tab) {
  document.body.dataset.tab = tab;
  ["locks", "history"].forEach((one) => setAttribute(byId(`tab-${one}`), "aria-pressed", String(one === tab)));
}

const root = document.documentElement;
const THEME = "leasehold-theme";

function setTheme(theme) {
  root.dataset.theme = theme;
  try {
    localStorage.setItem(THEME, theme);
  } catch {
    // Where nothing may be stored, the choice lasts as long as the page.
  }
}

function switchTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
}

try {
  const theme = localStorage.getItem(THEME);
  if (theme) root.dataset.theme = theme;
} catch {
  // The same.
}

const KEYS = {
  "/": () => filter.focus(),
  j: () => moveFocus(1),
  k: () => moveFocus(-1),
  t: switchTheme,
};
// Elsewhere, the arrows scroll the page.
const KEYS_IN_ROW = { ArrowDown: KEYS.j, ArrowUp: KEYS.k };
const KEYS_IN_FILTER = { Escape: leaveFilter, Enter: () => moveFocus(0), ArrowDown: () => moveFocus(0) };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const view = [...locks.values()].find(({ node }) => node === event.target);
  const inRow = view && { ...KEYS, ...KEYS_IN_ROW, Enter: () => view.toggle() };
  const action = (event.target === filter ? KEYS_IN_FILTER : inRow || KEYS)[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
["locks", "history"].forEach((tab) => byId(`tab-${tab}`).addEventListener("click", () => showTab(tab)));
byId("theme").addEventListener("click", switchTheme);
