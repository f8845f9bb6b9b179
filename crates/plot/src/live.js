// Lets readers of a page point at values, zoom and hide curves. Without it, and in print, the SVG stays.
(() => {
  "use strict";
  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(name.length === 2 ? "--plot-" + name[1] : "--plot-" + name).trim();
  const shown = (v) => {
    if (v == null) return "–";
    const short = +v.toPrecision(5);
    const text = short !== 0 && (Math.abs(short) < 1e-3 || Math.abs(short) >= 1e7) ? short.toExponential() : String(short);
    return text.replaceAll("-", "−").replace("e+", "e");
  };
  const element = (kind, text, parent) => {
    const made = parent.appendChild(document.createElement(kind[0] === "." ? "div" : kind));
    if (kind[0] === ".") made.className = kind.slice(1);
    made.textContent = text;
    return made;
  };

  // One column for each curve, and two for a band, over all x together. Equal x of one curve are set apart.
  function columns(plot) {
    const apart = (plot.xr[1] - plot.xr[0]) * 1e-9;
    const series = [];
    const tables = [];
    let before = [];
    for (const curve of plot.curves) {
      before = curve.x || before;
      let order = before.map((_, i) => i);
      if (curve.style === "points") order.sort((a, b) => before[a] - before[b]);
      const xs = [];
      for (const i of order) xs.push(xs.length && before[i] <= xs[xs.length - 1] ? xs[xs.length - 1] + apart : before[i]);
      const add = (values, of) => {
        tables.push([xs, order.map((i) => values[i])]);
        series.push({ ...curve, ...of });
      };
      if (curve.style === "band") {
        add(curve.high, { partner: 1 });
        add(curve.low, { partner: -1 });
      } else {
        add(curve.y, {});
      }
    }
    // the ends of the axis, which have no values of their own
    tables.push([plot.xr.slice(), [null, null]]);
    const data = uPlot.join(tables);
    data.pop();
    return [data, series];
  }

  // The place of the value to show at x: that of the step that holds there, otherwise the nearest.
  function nearest(u, series, at, x) {
    const values = u.data[series];
    const here = u.series[series].steps ? -1 : 0;
    let [left, right] = [at, at];
    if (values[at] === undefined && here < 0 && u.data[0][at] < x) right += 1;
    while (left >= 0 && values[left] === undefined) left -= 1;
    while (right < values.length && values[right] === undefined) right += 1;
    // before its first point and beyond its last one a curve has no value
    if (right >= values.length || left < 0) return at;
    if (here < 0) return right;
    return x - u.data[0][left] < u.data[0][right] - x ? left : right;
  }

  function curve(of) {
    const tint = () => colour(of.colour);
    const line = of.style === "line" || of.style === "steps";
    return {
      label: of.name || "value",
      stroke: of.style === "band" ? () => "transparent" : tint,
      width: line ? 1.7 : 0,
      dash: of.dash.length ? of.dash : undefined,
      steps: of.style === "steps",
      paths: of.style === "steps" ? uPlot.paths.stepped({ align: -1 }) : of.style === "points" ? () => null : undefined,
      points: { show: of.style === "points", size: of.size, width: of.hollow ? 1.5 : 0, stroke: tint, fill: of.hollow ? "transparent" : tint },
      value: of.partner === 1 ? (u, v, i, at) => (v == null ? "–" : shown(u.data[i + 1][at]) + " – " + shown(v)) : (_, v) => shown(v),
    };
  }

  const height = (width) => Math.round(Math.min(380, Math.max(190, width * 0.45))) + 50;

  function options(plot, series, width) {
    let whole = true;
    const across = (_, low, high) => {
      whole = low <= plot.xr[0] && high >= plot.xr[1];
      return [low, high];
    };
    const decades = (_, all) => all.map((v) => (Math.abs(Math.log10(v) % 1) < 1e-9 ? v : null));
    const axis = (log, more) => ({ stroke: () => colour("ink"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      grid: { stroke: () => colour("grid"), width: 1, filter: log ? decades : (_, all) => all }, ticks: { show: false }, values: (_, all) => all.map((v) => (v == null ? "" : shown(v))), ...more });
    const y = plot.log[1]
      ? { distr: 3, range: (_, low, high) => (whole || low == null ? plot.yr : uPlot.rangeLog(low, high, 10, false)) }
      : { range: (_, low, high) => (whole || low == null ? plot.yr : uPlot.rangeNum(low, high, 0.1, true)) };
    return {
      width,
      height: height(width),
      scales: { x: { time: false, distr: plot.log[0] ? 3 : 1, range: across }, y },
      axes: [axis(plot.log[0], { label: plot.x, labelSize: 20, size: 26 }), axis(plot.log[1], { size: 52 })],
      series: [{ label: plot.x, value: (_, v) => shown(v) }, ...series.map(curve)],
      bands: series.flatMap((of, i) => (of.partner === 1 ? [{ series: [i + 1, i + 2], fill: () => colour(of.colour) + "38" }] : [])),
      // pointing at one picture shows the values at this x in all that have the same axis
      cursor: { dataIdx: nearest, drag: { x: true, y: false, dist: 5 }, sync: { key: plot.x, scales: ["x", null], setSeries: false } },
      legend: { markers: { width: 2, dash: (_, i) => (series[i - 1] && series[i - 1].dash.length ? "dashed" : "solid"), stroke: (_, i) => series[i - 1] && colour(series[i - 1].colour), fill: (_, i) => series[i - 1] && series[i - 1].style !== "line" && series[i - 1].style !== "steps" ? colour(series[i - 1].colour) + "80" : null } },
      hooks: {
        drawClear: [(u) => marks(u, plot.marks)],
        setSeries: [(u, i, change) => {
          const partner = i && series[i - 1].partner ? i + series[i - 1].partner : 0;
          if (partner && change.show != null && u.series[partner].show !== change.show) u.setSeries(partner, { show: change.show });
          u.root.querySelectorAll(".u-series").forEach((row, n) => n && row.firstChild.setAttribute("aria-pressed", u.series[n].show));
        }],
      },
    };
  }

  function marks(u, all) {
    for (const mark of all) {
      const [from, to] = [mark.from, mark.to].map((x) => Math.min(u.bbox.left + u.bbox.width, Math.max(u.bbox.left, u.valToPos(x, "x", true))));
      u.ctx.save();
      u.ctx.globalAlpha = 0.22;
      u.ctx.fillStyle = colour(mark.colour);
      if (to > from || (mark.from >= u.scales.x.min && mark.to <= u.scales.x.max)) u.ctx.fillRect(from, u.bbox.top, Math.max(1.5, to - from), u.bbox.height);
      u.ctx.restore();
    }
  }

  // The legend's entries are buttons for the keyboard too.
  function buttons(u, series) {
    u.root.querySelectorAll(".u-series").forEach((row, i) => {
      if (i === 0) return;
      if (series[i - 1].partner === -1) row.style.display = "none";
      const entry = row.firstChild;
      entry.tabIndex = 0;
      entry.setAttribute("role", "button");
      entry.setAttribute("aria-pressed", "true");
      entry.title = "hide or show";
      entry.addEventListener("keydown", (e) => {
        if (e.key === "Enter" || e.key === " ") {
          e.preventDefault();
          entry.click();
        }
      });
    });
  }

  function draw(figure) {
    const plot = JSON.parse(figure.querySelector("script").textContent);
    const [data, series] = columns(plot);
    if (figure.chart) {
      figure.chart.destroy();
      figure.lastChild.remove();
    }
    const box = element(".chart", "", figure);
    element(".chart-title", plot.title, box);
    element("div", plot.y, box);
    const names = [...new Set(plot.marks.map((m) => m.name))];
    figure.chart = new uPlot(options(plot, series, figure.clientWidth), data, box);
    buttons(figure.chart, series);
    for (const name of names) {
      const entry = element(".chart-mark", name, box);
      entry.style.setProperty("--mark", colour(plot.marks.find((m) => m.name === name).colour));
    }
    if (plot.note) element(".small", plot.note, box);
    if (figure === figures[0]) element(".chart-help", "Drag to zoom, double-click to see all again; a click on a name hides its curve.", box);
    figure.classList.add("on");
  }

  const figures = document.querySelectorAll("figure.live");
  figures.forEach(draw);
  const watch = new ResizeObserver((changed) => {
    for (const { target } of changed) {
      const width = target.clientWidth;
      if (width > 0 && width !== target.chart.width) target.chart.setSize({ width, height: height(width) });
    }
  });
  figures.forEach((figure) => watch.observe(figure));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => figures.forEach(draw));
})();
