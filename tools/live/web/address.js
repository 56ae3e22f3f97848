// What the page shows, in its address, so that a link or a bookmark shows it again:
//
//   #where?value=peak&threads=io_thd_*
//
// Values that a view has when the page opens are left out.

/// The view, and its parameters by name. `otherwise`: of an address without them.
export function readAddress(otherwise = "") {
  const [view, parameters] = (location.hash.slice(1) || otherwise).split("?");
  return { view, parameters: Object.fromEntries(new URLSearchParams(parameters)) };
}

let compose = null, isDue = false;

/// `make`: answers { view, parameters } of what is shown.
export function keepAddress(make) { compose = make; }

/// Something that the address names may have changed. Browsers allow some hundred changes a minute, and typing makes more.
export function addressChanged() {
  if (isDue || !compose) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    const { view, parameters } = compose();
    const text = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();
    rewriteAddress("#" + view + (text ? "?" + text : ""));
  }, 300);
}

/// A browser may refuse it of a page that is a file.
export function rewriteAddress(address) {
  try {
    history.replaceState(null, "", address);
  } catch { /* it stays as it is */ }
}

/// The entries that differ from the usual ones.
export const changedFrom = (usual, now) => Object.fromEntries(Object.entries(now).filter(([key, value]) => value !== usual[key]));
/// The entries that are known: an address may have anything.
export const onlyKnown = (usual, given) => Object.fromEntries(Object.entries(given).filter(([key]) => Object.hasOwn(usual, key)));

addEventListener("hashchange", () => location.reload());
