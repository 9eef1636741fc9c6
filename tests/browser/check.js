// Looks at the page as it is laid out, and returns what is wrong with it, one sentence each.
(() => {
  const wrong = [];
  const say = (text) => wrong.push(text);
  const name = (element) => element.id || element.closest("[id]")?.id || element.tagName;
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width + 1)
    say(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${width} px`);

  // Structure.
  if (document.documentElement.lang !== "en") say("the page has no language");
  for (const landmark of ["header", "nav", "main", "footer"])
    if (document.querySelectorAll(landmark).length !== 1) say(`not one ${landmark}`);
  const ids = new Set();
  for (const element of document.querySelectorAll("[id]")) {
    if (ids.has(element.id)) say(`id ${element.id} twice`);
    ids.add(element.id);
  }
  for (const link of document.querySelectorAll("a[href^='#']"))
    if (!ids.has(link.getAttribute("href").slice(1))) say(`link to ${link.getAttribute("href")} leads nowhere`);
  for (const attribute of ["aria-labelledby", "aria-describedby"])
    for (const element of document.querySelectorAll(`[${attribute}]`))
      for (const id of element.getAttribute(attribute).split(" "))
        if (!ids.has(id)) say(`${attribute} of ${name(element)} names ${id}, which is not there`);
  let level = 0;
  for (const heading of document.querySelectorAll("h1,h2,h3,h4,h5,h6")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) say(`heading “${heading.textContent}” skips a level`);
    level = next;
  }
  if (document.querySelectorAll("h1").length !== 1) say("not one h1");
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption || !table.caption.textContent.trim()) say(`table ${name(table)} has no caption`);
    if (table.querySelectorAll("thead th:not([scope=col])").length || !table.querySelector("thead th"))
      say(`table ${name(table)} has heads without scope`);
    if (table.querySelectorAll("tbody tr").length !== table.querySelectorAll("tbody th[scope=row]").length)
      say(`table ${name(table)} has rows without a head`);
    for (const row of table.rows)
      if (row.cells.length !== table.tHead.rows[0].cells.length) { say(`table ${name(table)} is ragged`); break; }
  }

  // Figures.
  const shrink = (box) => {
    // A line's box is taller than its letters.
    const slack = Math.min(box.width, box.height) * 0.2;
    const flat = box.width >= box.height;
    return {
      left: box.left + (flat ? 0.5 : slack), right: box.right - (flat ? 0.5 : slack),
      top: box.top + (flat ? slack : 0.5), bottom: box.bottom - (flat ? slack : 0.5),
    };
  };
  const figures = document.querySelectorAll("figure");
  if (!figures.length) say("no figure");
  for (const figure of figures) {
    const id = figure.getAttribute("aria-labelledby");
    const svg = [...figure.querySelectorAll("svg")].find((svg) => svg.getClientRects().length);
    if (!svg) { say(`figure ${id} has no picture`); continue; }
    if (!figure.querySelector("figcaption")?.textContent.trim()) say(`figure ${id} has no caption`);
    const frame = svg.getBoundingClientRect();
    if (frame.width < 100 || frame.height < 50) say(`figure ${id} is ${frame.width} × ${frame.height} px`);
    const picture = svg.closest(".picture").getBoundingClientRect();
    if (picture.right > width + 1 || picture.left < -1) say(`figure ${id} leaves the page`);
    if (!svg.querySelector("path,rect,circle,line,polyline,polygon")) say(`figure ${id} is empty`);
    const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
    if (!texts.length) say(`figure ${id} has no word`);
    const boxes = texts.map((text) => text.getBoundingClientRect());
    texts.forEach((text, index) => {
      const box = boxes[index];
      if (box.width === 0 || box.height === 0) say(`figure ${id}: “${text.textContent}” does not show`);
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        say(`figure ${id}: “${text.textContent}” runs out of the frame`);
    });
    const inner = boxes.map(shrink);
    for (let one = 0; one < texts.length; one += 1)
      for (let other = one + 1; other < texts.length; other += 1) {
        const a = inner[one], b = inner[other];
        if (Math.min(a.right, b.right) > Math.max(a.left, b.left) && Math.min(a.bottom, b.bottom) > Math.max(a.top, b.top))
          say(`figure ${id}: “${texts[one].textContent}” and “${texts[other].textContent}” overlap`);
      }
  }

  // Contrast of every visible text with what it stands on.
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgb = (colour) => {
    if (!known.has(colour)) known.set(colour, read(colour));
    return known.get(colour);
  };
  const read = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const contrast = (one, other) => {
    const [a, b] = [luminance(one), luminance(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const opaque = (colour) => (colour[3] ? colour : [255, 255, 255, 255]);
  const paper = opaque(rgb(getComputedStyle(document.body).backgroundColor));
  const faint = (text, ink, ground, where) => {
    const value = contrast(ink, ground);
    if (value < 4.5) say(`${where}: “${text.slice(0, 40)}” has a contrast of ${value.toFixed(2)}`);
  };
  for (const svg of document.querySelectorAll("figure svg")) {
    if (!svg.getClientRects().length) continue;
    // A text stands on the last opaque shape drawn before it that its middle is in.
    const shapes = [];
    for (const element of svg.querySelectorAll("rect,text")) {
      const style = getComputedStyle(element);
      const box = element.getBoundingClientRect();
      if (element.tagName === "rect") {
        const opaque = Number(style.fillOpacity) * Number(style.opacity) === 1;
        if (style.fill !== "none" && opaque) shapes.push({ box, fill: style.fill });
      } else if (element.textContent.trim()) {
        const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
        const below = shapes.findLast(({ box: around }) =>
          around.left <= x && x <= around.right && around.top <= y && y <= around.bottom);
        faint(element.textContent, rgb(style.fill), below ? rgb(below.fill) : paper, "picture");
      }
    }
  }
  for (const element of document.querySelectorAll("h1,h2,h3,p,a,summary,caption,dt,dd,li,legend,label,figcaption,thead th")) {
    if (!element.getClientRects().length) continue;
    let ground = element;
    while (ground && rgb(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
    const colour = ground ? rgb(getComputedStyle(ground).backgroundColor) : paper;
    faint(element.textContent, rgb(getComputedStyle(element).color), colour, element.tagName);
  }
  return wrong;
})()
