// Uses each picture that reacts as a reader would: points at it, zooms, goes back, hides a curve and shows it again.
async function use(doc, win) {
  const faults = [];
  const pause = () => new Promise((done) => setTimeout(done, 60));
  const mouse = (node, kind, x, y) =>
    node.dispatchEvent(new win.MouseEvent(kind, { bubbles: true, cancelable: true, view: win, clientX: x, clientY: y, movementX: 7, movementY: 7, button: 0 }));
  const figures = [...doc.querySelectorAll("figure.live")];
  for (const figure of figures) {
    const name = (figure.querySelector(".chart-title") || {}).textContent;
    const fault = (what) => faults.push("picture `" + name + "` " + what);
    const chart = figure.chart;
    if (!chart || !figure.classList.contains("on")) {
      fault("does not react");
      continue;
    }
    if (figure.querySelector("svg").getBoundingClientRect().width > 0) fault("is there twice");
    const over = figure.querySelector(".u-over");
    const box = over.getBoundingClientRect();
    const at = (share) => box.left + share * box.width;
    const middle = box.top + box.height / 2;
    const whole = [chart.scales.x.min, chart.scales.x.max];

    // the legend has the value of x, and of a curve what its data have there
    mouse(over, "mouseenter", at(0.6), middle);
    mouse(over, "mousemove", at(0.6), middle);
    await pause();
    const x = chart.posToVal(0.6 * box.width, "x");
    const cells = [...figure.querySelectorAll(".u-legend .u-value")].map((c) => c.textContent.replaceAll("−", "-"));
    const scattered = /sequence|Drops|against|distribution/i.test(name);
    if (!scattered && Math.abs(chart.valToPos(Number(cells[0]), "x") - 0.6 * box.width) > 0.05 * box.width) fault("shows x = " + cells[0] + " at " + x);
    const values = chart.data.slice(1).map((column, i) => column[chart.cursor.idxs[i + 1]]);
    values.forEach((v, i) => {
      if (v != null && Math.abs(Number(cells[i + 1]) - v) > 1e-4 * Math.abs(v)) fault("shows " + cells[i + 1] + " in place of " + v);
    });
    if (!values.some((v) => v != null)) {
      const known = chart.data.slice(1).some((column) => column.some((v, i) => v != null && Math.abs(chart.data[0][i] - x) < 0.01 * (whole[1] - whole[0])));
      if (!scattered && known) fault("has no value at " + x);
    }

    // from a quarter to a half
    const wanted = [0.25, 0.5].map((share) => chart.posToVal(share * box.width, "x"));
    mouse(over, "mousedown", at(0.25), middle);
    mouse(over, "mousemove", at(0.5), middle);
    mouse(doc, "mouseup", at(0.5), middle);
    await pause();
    const length = wanted[1] - wanted[0];
    const [from, to] = [chart.scales.x.min, chart.scales.x.max];
    if (Math.abs(from - wanted[0]) + Math.abs(to - wanted[1]) > 0.05 * length) fault("zoomed to " + from + " - " + to + " in place of " + wanted);
    mouse(over, "dblclick", at(0.5), middle);
    await pause();
    if (Math.abs(chart.scales.x.min - whole[0]) + Math.abs(chart.scales.x.max - whole[1]) > 1e-6 * length) fault("does not go back");

    // the name of the first curve, by mouse and by keyboard
    const entry = figure.querySelectorAll(".u-series th")[1];
    entry.click();
    await pause();
    if (chart.series[1].show) fault("does not hide a curve");
    if (entry.getAttribute("aria-pressed") !== "false") fault("does not say that a curve is hidden");
    entry.dispatchEvent(new win.KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
    await pause();
    if (!chart.series[1].show) fault("does not show the curve again");
  }
  return { used: figures.length, faults };
}
