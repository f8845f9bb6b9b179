// Looks at a page as a reader would: runs beside it in a frame of a given width and writes what is wrong as JSON.
function look(doc, win, width) {
  const faults = [];
  const fault = (what, node) => faults.push(what + (node ? ": " + (node.textContent || node.tagName).trim().slice(0, 60) : ""));
  if (doc.documentElement.scrollWidth > width + 1) {
    const wide = [...doc.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > width + 1);
    // what scrolls inside a box of its own is no fault; the widest culprit is named
    const inBox = (e) => { for (let p = e.parentElement; p && p !== doc.body; p = p.parentElement) if (/auto|scroll/.test(win.getComputedStyle(p).overflowX)) return true; return false; };
    const culprit = wide.find((e) => !inBox(e));
    fault("the page is wider than the window by " + Math.round(doc.documentElement.scrollWidth - width) + " px", culprit);
  }
  const colour = (text) => (text.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
  const light = ([r, g, b]) => { const f = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const background = (e) => { for (let p = e; p; p = p.parentElement) { const c = colour(win.getComputedStyle(p).backgroundColor); if (c.length < 4 || c[3] > 0.5) return c; } return win.matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255]; };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  // a picture may hold smaller ones that only cut off what lies outside
  const svgs = [...doc.querySelectorAll("svg")].filter((s) => !s.parentElement.closest("svg"));
  let texts = 0;
  for (const svg of svgs) {
    const frame = svg.getBoundingClientRect();
    if (frame.width < 1) continue;
    if (svg.querySelectorAll("title").length === 0) fault("a picture has no title for those who cannot see it", svg);
    const boxes = [];
    for (const text of svg.querySelectorAll("text")) {
      const style = win.getComputedStyle(text);
      if (!text.textContent.trim() || style.display === "none") continue;
      texts += 1;
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) fault("text is cut off at the edge of its picture", text);
      const size = box.height;
      if (size < 8) fault("text is less than 8 px high", text);
      if (contrast(colour(style.fill), background(svg.parentElement)) < 3) fault("text is hard to read on its background", text);
      boxes.push([text, box]);
    }
    for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
      const [a, b] = [boxes[i][1], boxes[j][1]];
      const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      // boxes of text hold some air above and below the letters
      if (w > 1 && h > Math.min(a.height, b.height) * 0.3) fault("texts overlap in a picture: " + boxes[i][0].textContent + " / " + boxes[j][0].textContent);
    }
    for (const axis of svg.querySelectorAll(".axis-label")) {
      if (!/,|\d|probability|share|rate|number|index/.test(axis.textContent)) fault("an axis has no unit", axis);
    }
  }
  for (const cell of doc.querySelectorAll("p, td, th, li, h1, h2, h3, summary, figcaption")) {
    if (!cell.textContent.trim() || cell.getClientRects().length === 0) continue;
    if (contrast(colour(win.getComputedStyle(cell).color), background(cell)) < 4.5) { fault("text is hard to read on its background", cell); break; }
  }
  return { svgs: svgs.length, texts, dark: win.matchMedia("(prefers-color-scheme: dark)").matches, width: win.innerWidth, faults: [...new Set(faults)] };
}
const frame = document.querySelector("iframe");
const result = document.getElementById("result");
// On paper: rules for print hold, those for screens do not.
function print(doc) {
  for (const sheet of doc.styleSheets) for (const rule of sheet.cssRules) {
    if (!rule.media) continue;
    const media = rule.media.mediaText;
    if (media === "print") rule.media.mediaText = "all";
    if (media === "screen") rule.media.mediaText = "not all";
  }
}
frame.addEventListener("load", async () => {
  const doc = frame.contentDocument;
  for (const d of doc.querySelectorAll("details")) d.open = true;
  try {
    const used = mode === "live" ? await use(doc, frame.contentWindow) : { used: 0, faults: [] };
    if (mode === "printed") print(doc);
    const seen = look(doc, frame.contentWindow, frame.clientWidth);
    if (mode !== "live" && [...doc.querySelectorAll("figure.live > svg")].some((s) => s.getBoundingClientRect().width < 1)) seen.faults.push("a picture is hidden");
    if (mode === "printed" && [...doc.querySelectorAll(".chart")].some((c) => c.getClientRects().length > 0)) seen.faults.push("what is for the screen is printed");
    if (mode === "printed" && frame.contentWindow.getComputedStyle(doc.body).backgroundColor !== "rgb(255, 255, 255)") seen.faults.push("the paper is not white");
    seen.faults.push(...used.faults);
    seen.used = used.used;
    result.textContent = JSON.stringify(seen);
  } catch (e) { result.textContent = JSON.stringify({ svgs: 0, texts: 0, faults: ["the check itself failed: " + e] }); }
});
// without scripts, but in the same origin, so that it can be looked at
if (mode === "still") frame.setAttribute("sandbox", "allow-same-origin");
frame.srcdoc = document.getElementById("page").textContent;
