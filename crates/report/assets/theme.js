// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// The theme, before anything is seen: the one that was chosen here, else the one the system prefers.
const onrampTheme = (() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const storage = (use) => {
    try {
      return use(localStorage);
    } catch {
      return null; // Some browsers keep nothing for files: it holds until the page is closed.
    }
  };
  const chosen = () => storage((store) => store.getItem("onramp-theme"));
  const preferred = () => chosen() ?? (dark.matches ? "dark" : "light");
  const keep = (name) => storage((store) => store.setItem("onramp-theme", name));
  document.documentElement.dataset.theme = preferred();
  return { dark, preferred, keep };
})();
