// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// Draws the page's plots with Plotly, in the colours of the theme: when they come into view, all of
// them for the printer. The data are crates/results/src/figure.rs's `Plot`s.
(() => {
  "use strict";
  const { palette, plots } = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const MARKED_POINTS = 60; // A line of more points has no markers.
  const DENSE_POINTS = 400; // A line of more points is thin, and not dashed.
  const LABELLED_CELLS = 150; // A heat map of more cells has no numbers in them.
  const NAME_PX = 14; // Of a heat map's row or column, below which not all are named.
  const GLYPHS = "\u25cf\u25a0\u25c6\u25b2\u271a\u2716\u25bc\u2605"; // Of the palette's markers.
  const PRINT_PX = { width: 680, height: 300 }; // An A4 page less its margins; three a page.
  const charts = []; // {div, plot, hidden: Set of series, drawn}

  // Plotly takes a few tags of HTML in texts: there are none in ours.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  const [few, many] = [4, 9].map((digits) => new Intl.NumberFormat("en", { maximumSignificantDigits: digits }));
  function number(value) {
    if (value === null || value === undefined) return "none";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toPrecision(4);
    return (size < 1000 ? few : many).format(value).replace(/,/g, "\u202f");
  }

  // Breaks a label into lines that fit a width.
  function wrapped(text, width) {
    const most = Math.max(10, Math.floor(width / 7));
    const lines = [""];
    for (const word of text.split(" ")) {
      const last = lines[lines.length - 1];
      if (last && last.length + 1 + word.length > most) lines.push(word);
      else lines[lines.length - 1] = last ? `${last} ${word}` : word;
    }
    return lines.map(plain).join("<br>");
  }

  const theme = () => root.dataset.theme;
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // A name has one colour in a section; dashes and markers tell series of a plot apart without colours.
  function look(plot, index) {
    const of = (list, i) => list[i % list.length];
    return {
      colour: of(palette[theme()], plot.colours[index]), dash: of(palette.dashes, index),
      marker: of(palette.markers, index),
    };
  }

  const shown = (axis, value) => axis.categories[value] ?? number(value);

  function hover(plot, series) {
    const name = series.name ? `<b>${plain(series.name)}</b><br>` : "";
    const label = (axis, value) => `${plain(axis.label)}: ${plain(shown(axis, value))}`;
    return series.x.map((x, i) => {
      const known = series.low?.[i] != null && series.high?.[i] != null;
      const interval = known ? ` [${number(series.low[i])}, ${number(series.high[i])}]` : "";
      return `${name}${label(plot.x, x)}<br>${label(plot.y, series.y[i])}${interval}`;
    });
  }

  // An end that a logarithmic axis cannot show has no whisker.
  function errors({ y: { log } }, series, colour) {
    if (!series.low?.length && !series.high?.length) return undefined;
    const to = (ends, sign) => series.y.map((y, i) =>
      y === null || ends?.[i] == null || (log && ends[i] <= 0) ? 0 : Math.max(0, sign * (ends[i] - y)));
    return {
      type: "data", symmetric: false, array: to(series.high, 1), arrayminus: to(series.low, -1),
      color: colour, thickness: 1.5, width: 4,
    };
  }

  function heatTrace(plot, series) {
    const columns = plot.x.categories.length ? plot.x.categories.map((_, i) => i) : distinct(series.x);
    const rows = plot.y.categories.length ? plot.y.categories.map((_, i) => i) : distinct(series.y);
    // Of cells that nothing is known of, `none`.
    const grid = (of, none) => {
      const cells = rows.map(() => columns.map(() => none));
      series.x.forEach((x, i) => {
        const [row, column] = [rows.indexOf(series.y[i]), columns.indexOf(x)];
        if (row >= 0) cells[row][column] = of(x, series.y[i], series.z[i]);
      });
      return cells;
    };
    const name = plain(series.name);
    const text = (x, y, z) => `${plain(plot.y.label)} ${plain(shown(plot.y, y))}<br>` +
      `${plain(plot.x.label)} ${plain(shown(plot.x, x))}<br><b>${name}: ${number(z)}</b>`;
    const labels = columns.length * rows.length <= LABELLED_CELLS && {
      // Plotly writes "null" for an empty text.
      text: grid((x, y, z) => (z === null ? "\u00a0" : String(Number(z.toPrecision(3)))), "\u00a0"),
      texttemplate: "%{text}",
    };
    return {
      type: "heatmap", z: grid((x, y, z) => z, null), hovertext: grid(text, ""), hoverinfo: "text",
      hoverongaps: false, colorscale: palette.heat, xgap: 1, ygap: 1, ...labels,
      colorbar: { title: { text: name, side: "right" }, thickness: 12, outlinewidth: 0 },
    };
  }

  const marked = (plot, series) =>
    plot.kind === "scatter" || (plot.kind === "line" && series.x.length <= MARKED_POINTS);

  const distinct = (values) => [...new Set(values)].filter((v) => v !== null).sort((a, b) => a - b);

  function trace(chart, series, index) {
    const { plot } = chart;
    if (plot.kind === "heat") return heatTrace(plot, series);
    const { colour, dash, marker } = look(plot, index);
    const common = {
      x: series.x, y: series.y, name: plain(series.name), hovertext: hover(plot, series), hoverinfo: "text",
      visible: !chart.hidden.has(index), showlegend: false,
    };
    if (plot.kind === "bar") {
      return { ...common, type: "bar", marker: { color: colour }, error_y: errors(plot, series, css("--text")) };
    }
    const dense = series.x.length > DENSE_POINTS;
    const lines = {
      line: { color: colour, dash: dense ? "solid" : dash, width: dense ? 1.2 : 2 },
      marker: { color: colour, symbol: marker, size: 7 },
    };
    const kinds = {
      line: { mode: marked(plot, series) ? "lines+markers" : "lines" },
      step: { mode: "lines", line: { ...lines.line, shape: "hv" } },
      scatter: { mode: "markers" },
      stacked: { mode: "lines", stackgroup: "all", line: { color: colour, width: 1 }, fillcolor: `${colour}b0` },
    };
    return { ...common, type: "scatter", ...lines, error_y: errors(plot, series, colour), ...kinds[plot.kind] };
  }

  function axis(of, extra) {
    const named = of.categories.length > 0;
    return {
      automargin: true, gridcolor: css("--grid"), zerolinecolor: css("--line"), linecolor: css("--muted"),
      showline: true, ticks: "outside", tickcolor: css("--muted"), type: of.log ? "log" : "linear",
      ...(named && { type: "linear", tickvals: of.categories.map((_, i) => i), ticktext: of.categories.map(plain),
        showgrid: false, zeroline: false }),
      ...extra,
    };
  }

  // A heat map's axis counts cells: numbers are named by their values.
  function heatAxis(of, values, room, extra) {
    const names = of.categories.length ? of.categories : distinct(values).map(number);
    const kept = names.map((_, i) => i).filter((i) => i % Math.ceil((names.length * NAME_PX) / room) === 0);
    return axis({ ...of, log: false, categories: names }, {
      tickvals: kept, ticktext: kept.map((i) => plain(names[i])), ...extra, ticks: "", showline: false,
    });
  }

  function layout(chart) {
    const { plot, div } = chart;
    const { width, height } = chart.printed ? PRINT_PX : { width: div.clientWidth, height: div.clientHeight };
    const heat = plot.kind === "heat";
    const title = (of, room) => ({ title: { text: wrapped(of.label, room), standoff: 8 } });
    const log = (of, key) => {
      const values = plot.series.flatMap((series) => series[key]);
      const tickformat = values.some((v) => v > 0 && v < 1) ? "~g" : "~s";
      return of.log && { tickformat, nticks: width < 450 ? 5 : 6 };
    };
    const fromZero = !plot.y.log && ["bar", "line", "step", "stacked"].includes(plot.kind) && { rangemode: "tozero" };
    let x = { ...title(plot.x, width - 90), ...(!heat && log(plot.x, "x")) };
    let y = { ...title(plot.y, height - 90), ...(!heat && log(plot.y, "y")), ...fromZero };
    if (heat) {
      const values = (key) => plot.series[0]?.[key] ?? [];
      // Named rows are read from the top, numbers grow upwards.
      const upright = plot.y.categories.length ? { autorange: "reversed" } : {};
      x = heatAxis(plot.x, values("x"), width - 150, x);
      y = heatAxis(plot.y, values("y"), height - 120, { ...y, ...upright });
    } else {
      // Long names end below their ticks.
      const names = plot.x.categories.reduce((sum, name) => sum + name.length * 7 + 10, 0);
      [x, y] = [axis(plot.x, { ...x, ...(names > width - 80 && { tickangle: -35 }) }), axis(plot.y, y)];
    }
    return {
      xaxis: x, yaxis: y,
      margin: { l: 55, r: 12, t: 34, b: 45 },
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("--text") },
      paper_bgcolor: css("--back"), plot_bgcolor: css(heat ? "--line" : "--back"),
      hoverlabel: { bgcolor: css("--panel"), bordercolor: css("--muted"), font: { color: css("--text") }, align: "left" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--muted"), activecolor: css("--link") },
      hovermode: "closest", barmode: "group", bargap: 0.25, uirevision: "kept",
      // A finger scrolls the page; the buttons zoom.
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      ...(chart.printed && { width: PRINT_PX.width, height: PRINT_PX.height }),
    };
  }

  const CONFIG = {
    responsive: true, displaylogo: false, displayModeBar: true,
    modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
    toImageButtonOptions: { format: "svg", filename: "onramp" },
  };

  function draw(chart) {
    const traces = chart.plot.series.map((series, index) => trace(chart, series, index));
    Plotly.react(chart.div, traces, layout(chart), CONFIG);
    chart.drawn = true;
    drawLegend(chart);
  }

  function swatch(plot, index) {
    const series = plot.series[index];
    const { colour, dash, marker } = look(plot, index);
    const filled = plot.kind === "bar" || plot.kind === "stacked";
    const dashes = { solid: "", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "11 4", longdashdot: "11 3 2 3" };
    const gaps = series.x.length > DENSE_POINTS ? "" : dashes[dash];
    const glyph = GLYPHS[palette.markers.indexOf(marker)];
    const parts = [
      filled && `<rect width="12" height="12" x="7" y="1" fill="${colour}"/>`,
      ["line", "step"].includes(plot.kind)
        && `<path d="M0 7H26" stroke="${colour}" stroke-width="2.5" stroke-dasharray="${gaps}"/>`,
      marked(plot, series)
        && `<text x="13" y="11" font-size="12" text-anchor="middle" fill="${colour}">${glyph}</text>`,
    ];
    return `<svg width="26" height="14" aria-hidden="true">${parts.filter(Boolean).join("")}</svg>`;
  }

  function drawLegend(chart) {
    const { plot, div, hidden } = chart;
    const legend = div.parentElement.querySelector(".legend");
    if (plot.kind === "heat") {
      legend?.remove();
      return;
    }
    plot.series.forEach((series, index) => {
      const button = legend.children[index] ?? legend.appendChild(document.createElement("button"));
      button.type = "button";
      button.setAttribute("aria-pressed", String(!hidden.has(index)));
      button.innerHTML = swatch(plot, index);
      button.append(series.name);
      button.onclick = () => toggle(chart, index);
    });
  }

  function toggle(chart, index) {
    if (!chart.hidden.delete(index)) chart.hidden.add(index);
    draw(chart);
  }

  function setTheme(name) {
    root.dataset.theme = name;
    const other = name === "dark" ? "light" : "dark";
    const button = document.getElementById("theme");
    button.textContent = other === "dark" ? "\u263e dark" : "\u2600 light";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
    charts.filter((chart) => chart.drawn).forEach(draw);
  }

  // The printer gets everything: light, unfolded, and plots as wide as its paper.
  let before = null;
  function toPaper() {
    if (before) return;
    const folded = [...document.querySelectorAll("details:not([open])")];
    before = { theme: theme(), folded };
    folded.forEach((details) => { details.open = true; });
    charts.forEach((chart) => { chart.printed = true; });
    setTheme("light");
    charts.filter((chart) => !chart.drawn).forEach(draw);
  }
  function fromPaper() {
    if (!before) return;
    before.folded.forEach((details) => { details.open = false; });
    charts.forEach((chart) => { chart.printed = false; });
    setTheme(before.theme);
    before = null;
  }

  setTheme(onrampTheme.preferred());
  onrampTheme.dark.addEventListener("change", () => setTheme(onrampTheme.preferred()));
  document.getElementById("theme").addEventListener("click", () => {
    const name = theme() === "dark" ? "light" : "dark";
    onrampTheme.keep(name);
    setTheme(name);
  });
  addEventListener("beforeprint", toPaper);
  addEventListener("afterprint", fromPaper);

  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      const chart = charts[Number(target.dataset.plot)];
      if (isIntersecting && !chart.drawn) draw(chart);
    }
  }, { rootMargin: "400px" });
  for (const div of document.querySelectorAll(".chart")) {
    charts.push({ div, plot: plots[Number(div.dataset.plot)], hidden: new Set(), drawn: false });
    seen.observe(div);
  }
})();
