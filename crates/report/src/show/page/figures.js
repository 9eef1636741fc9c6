// Pictures that answer: values where one points, a part made larger, lines on and off, and words that choose lines. All of it
// by pointer and by keyboard.

function element(name, attributes, parent) {
  var made = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
  parent.appendChild(made);
  return made;
}
function inside(place, at) {
  return at.x >= place.x && at.x <= place.x + place.width && at.y >= place.y && at.y <= place.y + place.height;
}
// From places in a chart, 0 to 1, to those in the picture, and back.
function toPicture(chart, at) {
  var shown = chart.shown, place = chart.place;
  return {
    x: place.x + place.width * (at.x - shown.left) / (shown.right - shown.left),
    y: place.y + place.height * (shown.top - at.y) / (shown.top - shown.bottom)
  };
}
function toChart(chart, at) {
  var shown = chart.shown, place = chart.place;
  return {
    x: shown.left + (shown.right - shown.left) * (at.x - place.x) / place.width,
    y: shown.top - (shown.top - shown.bottom) * (at.y - place.y) / place.height
  };
}

// Enlarging. What is drawn in a chart is stretched; its markers and words keep their size, and its axes get ticks of their own.
var clips = 0;
function stretchable(svg, chart) {
  var id = "clip-" + (clips += 1), next = chart.axes.nextElementSibling, content = [], middle, bounds;
  for (; next && !next.matches(".rb-plot, .rb-hover"); next = next.nextElementSibling) {
    bounds = next.getBBox();
    middle = { x: bounds.x + bounds.width / 2, y: bounds.y + bounds.height / 2 };
    if (!next.matches(".rb-key, .rb-heading") && inside(chart.place, middle)) content.push(next);
  }
  chart.window = element("g", {}, svg);
  element("rect", chart.place, element("clipPath", { id: id }, chart.window));
  chart.clip = "url(#" + id + ")";
  chart.content = element("g", {}, chart.window);
  chart.axes.after(chart.window);
  content.forEach(function (part) { chart.content.appendChild(part); });
  // Markers are drawn by steps from their place, with a stroke.
  var fixed = chart.content.querySelectorAll("text, rect.f-bg, path[class*='s-'][d*='h'], path[class*='s-'][d*='a'], path[class*='s-'][d*='l'], rect[class*='s-']");
  chart.fixed = Array.from(fixed, function (part) {
    var bounds = part.getBBox(), at = { x: bounds.x + bounds.width / 2, y: bounds.y + bounds.height / 2 };
    // The ground of a word goes with it.
    var word = part.matches(".f-bg") ? part.nextElementSibling : part, isWord = word && word.tagName === "text";
    if (isWord) at = { x: word.getAttribute("x"), y: word.getAttribute("y") };
    return { part: part, at: at, isSmall: isWord || Math.max(bounds.width, bounds.height) < 20 };
  }).filter(function (one) { return one.isSmall; });
}
function redraw(svg, chart) {
  if (!chart.content) stretchable(svg, chart);
  var shown = chart.shown, place = chart.place, across = 1 / (shown.right - shown.left), up = 1 / (shown.top - shown.bottom);
  var origin = toPicture(chart, toChart({ place: place, shown: whole() }, { x: 0, y: 0 })), isWhole = across === 1 && up === 1;
  chart.content.setAttribute("transform", "translate(" + origin.x + " " + origin.y + ") scale(" + across + " " + up + ")");
  chart.window.setAttribute("class", isWhole ? "" : "enlarged");
  chart.window.setAttribute("clip-path", isWhole ? "none" : chart.clip);
  chart.fixed.forEach(function (one) {
    var at = one.at;
    one.part.setAttribute("transform", "translate(" + at.x + " " + at.y + ") scale(" + 1 / across + " " + 1 / up + ") translate(" + -at.x + " " + -at.y + ")");
  });
  chart.marks.forEach(function (marks) { marks.style.display = isWhole ? "" : "none"; });
  if (chart.own) chart.own.remove();
  if (isWhole) return;
  var bottom = place.y + place.height;
  chart.own = element("g", { class: "rb-own", "aria-hidden": "true" }, chart.axes);
  chart.axes.prepend(chart.own);
  function tick(line, words, text) {
    element("path", { d: line, class: "s-grid", fill: "none" }, chart.own);
    element("text", Object.assign({ class: "f-fg", "font-size": 12 }, words), chart.own).textContent = text;
  }
  ticks(chart.x, shown.left, shown.right, Math.max(2, place.width / 70)).forEach(function (one) {
    var x = toPicture(chart, { x: one.part, y: 0 }).x;
    tick("M" + x + " " + place.y + "V" + bottom, { x: x, y: bottom + 18, "text-anchor": "middle" }, one.text);
  });
  ticks(chart.y, shown.bottom, shown.top, Math.max(2, place.height / 30)).forEach(function (one) {
    var y = toPicture(chart, { x: 0, y: one.part }).y;
    tick("M" + place.x + " " + y + "h" + place.width, { x: place.x - 7, y: y + 4, "text-anchor": "end" }, one.text);
  });
}
// Shows a part of this size around a place, within the chart.
function enlarge(svg, chart, at, width, height) {
  function range(middle, size) {
    size = Math.max(0.001, Math.min(1, size));
    var from = Math.max(0, Math.min(1 - size, middle - size / 2));
    return [from, size === 1 ? 1 : from + size];
  }
  var x = range(at.x, width), y = range(at.y, height);
  chart.shown = { left: x[0], right: x[1], bottom: y[0], top: y[1] };
  redraw(svg, chart);
}

// The cross-hair: a place in a chart, and the values of all lines there.
function crossHair(picture, svg) {
  var tip = document.createElement("div"), mark = null, hair = { chart: null, at: null };
  tip.className = "tip";
  tip.hidden = true;
  picture.appendChild(tip);
  function add(kind, text, colour) {
    var row = document.createElement(kind);
    if (colour) row.appendChild(document.createElement("i")).style.background = colour;
    row.append(text);
    tip.appendChild(row);
  }
  hair.clear = function () {
    tip.hidden = true;
    if (mark) mark.remove();
    mark = hair.chart = hair.at = null;
  };
  // Points of the lines that are shown, from left to right.
  hair.points = function (chart) {
    var found = [];
    chart.lines.forEach(function (line) {
      if (!line.series.closest(".off")) line.points.forEach(function (point) { found.push({ line: line, point: point }); });
    });
    return found.sort(function (a, b) { return a.point.x - b.point.x; });
  };
  function far(chart, one, x) { return Math.abs(one.point.x - x) * chart.place.width / (chart.shown.right - chart.shown.left); }
  // Goes to the points nearest to `x`; the tip stands at `pointer`, in pixels of the window, or at the cross-hair.
  hair.go = function (chart, x, pointer) {
    hair.clear();
    var found = hair.points(chart), shown = chart.shown, place = chart.place;
    if (pointer) found = found.filter(function (one) { return one.point.x >= shown.left && one.point.x <= shown.right; });
    if (!found.length) return;
    function nearer(best, one) { return far(chart, one, x) < far(chart, best, x) ? one : best; }
    var to = found.reduce(nearer).point;
    hair.chart = chart;
    hair.at = to;
    if (!pointer && (to.x < shown.left || to.x > shown.right || to.y < shown.bottom || to.y > shown.top))
      enlarge(svg, chart, to, shown.right - shown.left, shown.top - shown.bottom);
    // Of each line the point that is nearest.
    x = to.x;
    found = chart.lines.map(function (line) {
      var own = found.filter(function (one) { return one.line === line && far(chart, one, x) < 3; });
      return own.length ? own.reduce(nearer) : null;
    }).filter(Boolean).sort(function (a, b) { return b.point.y - a.point.y; });
    var middle = toPicture(chart, to);
    mark = element("g", { class: "rb-hover", "aria-hidden": "true" }, svg);
    element("path", { d: "M" + middle.x + " " + place.y + "v" + place.height, class: "s-rule", fill: "none" }, mark);
    tip.textContent = "";
    tip.setAttribute("aria-live", pointer ? "off" : "polite");
    add("b", (chart.x.title[0] ? chart.x.title[0] + ": " : "") + written(chart.x, to.values[0]));
    found.forEach(function (one) {
      var at = toPicture(chart, one.point), colour = one.line.painted ? getComputedStyle(one.line.painted).stroke : "";
      var circle = { cx: at.x, cy: at.y, r: 4, fill: "none", stroke: colour, "stroke-width": 2 };
      if (inside(place, at)) element("circle", circle, mark);
      add("div", one.line.series.dataset.series + ": " + written(chart.y, one.point.values[1]), colour);
    });
    tip.hidden = false;
    pointer = pointer || new DOMPoint(middle.x, middle.y).matrixTransform(svg.getScreenCTM());
    var frame = picture.getBoundingClientRect(), left = pointer.x - frame.left + 14;
    tip.style.left = Math.max(0, left + tip.offsetWidth > frame.width ? left - tip.offsetWidth - 28 : left) + "px";
    tip.style.top = Math.max(0, pointer.y - frame.top + 14) + "px";
  };
  // Goes to the next point, or the one before.
  hair.step = function (by) {
    var all = hair.points(hair.chart).map(function (one) { return one.point.x; });
    var now = hair.at.x, beyond = all.filter(function (x) { return by > 0 ? x > now + 1e-6 : x < now - 1e-6; });
    hair.go(hair.chart, beyond.length ? beyond[by > 0 ? 0 : beyond.length - 1] : now);
  };
  return hair;
}

function alive(picture, svg) {
  var all = charts(svg), hair = crossHair(picture, svg), from = null, frame = null;
  if (!all.length) return;
  function place(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  }
  function chartAt(at) { return all.find(function (chart) { return inside(chart.place, at); }); }
  function showAll() {
    hair.clear();
    all.forEach(function (chart) { if (chart.content) enlarge(svg, chart, { x: 0, y: 0 }, 1, 1); });
  }
  // The part of the chart that is dragged over; along one axis where the other is hardly left.
  function dragged(at) {
    var of = from.chart.place, x = Math.max(of.x, Math.min(of.x + of.width, at.x)), y = Math.max(of.y, Math.min(of.y + of.height, at.y));
    var part = { x: Math.min(x, from.x), y: Math.min(y, from.y), width: Math.abs(x - from.x), height: Math.abs(y - from.y) };
    if (Math.max(part.width, part.height) < 8) return null;
    if (part.width < 8) Object.assign(part, { x: of.x, width: of.width });
    if (part.height < 8) Object.assign(part, { y: of.y, height: of.height });
    return part;
  }
  svg.addEventListener("pointerdown", function (event) {
    var at = place(event), chart = chartAt(at);
    from = chart && event.button === 0 && event.pointerType === "mouse" ? { chart: chart, x: at.x, y: at.y } : null;
    if (from) event.preventDefault();
  });
  window.addEventListener("pointerup", function (event) {
    if (frame) frame.remove();
    var part = from && dragged(place(event)), chart = from && from.chart;
    from = frame = null;
    if (!part) return;
    var one = toChart(chart, part), other = toChart(chart, { x: part.x + part.width, y: part.y + part.height });
    hair.clear();
    enlarge(svg, chart, { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 }, other.x - one.x, one.y - other.y);
  });
  svg.addEventListener("dblclick", showAll);
  svg.addEventListener("pointermove", function (event) {
    var at = place(event), chart = chartAt(at), part = from && dragged(at);
    if (frame) frame.remove();
    if (part) {
      hair.clear();
      frame = element("rect", Object.assign({ class: "s-rule", fill: "none" }, part), svg);
    } else if (chart) hair.go(chart, toChart(chart, at).x, { x: event.clientX, y: event.clientY });
    else hair.clear();
  });
  svg.addEventListener("pointerleave", hair.clear);

  // Entries of the legend show and hide their lines.
  svg.querySelectorAll(".rb-key").forEach(function (key) {
    var name = key.dataset.series;
    var own = Array.from(svg.querySelectorAll(".rb-series")).filter(function (series) {
      return series.dataset.series === name || series.dataset.series.indexOf(name + ", p") === 0;
    });
    if (!own.length) return;
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", "0");
    key.setAttribute("aria-pressed", "true");
    key.setAttribute("aria-label", name);
    function turn() {
      var off = key.classList.toggle("off");
      key.setAttribute("aria-pressed", String(!off));
      own.forEach(function (series) { series.classList.toggle("off", off); });
      hair.clear();
    }
    key.addEventListener("click", turn);
    key.addEventListener("keydown", function (event) {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      turn();
    });
  });

  // The keys: through the points of a chart, to another chart, and to enlarge around the cross-hair or the middle.
  function withPoints() { return all.filter(function (chart) { return hair.points(chart).length; }); }
  svg.setAttribute("role", "group");
  svg.setAttribute("tabindex", "0");
  function scale(by) {
    var chart = hair.chart || all[0], shown = chart.shown;
    var at = hair.at || { x: (shown.left + shown.right) / 2, y: (shown.bottom + shown.top) / 2 };
    enlarge(svg, chart, at, (shown.right - shown.left) * by, (shown.top - shown.bottom) * by);
    if (hair.chart) hair.go(chart, at.x);
  }
  function toPoint(by) {
    var first = withPoints()[0];
    if (hair.chart) hair.step(by);
    else if (first) hair.go(first, by > 0 ? 0 : 1);
  }
  function toOther(by) {
    var told = withPoints(), next = told[told.indexOf(hair.chart) + by];
    if (next) hair.go(next, 0);
  }
  var KEYS = {
    ArrowRight: function () { toPoint(1); },
    ArrowLeft: function () { toPoint(-1); },
    ArrowDown: function () { toOther(1); },
    ArrowUp: function () { toOther(-1); },
    "+": function () { scale(1 / 1.5); },
    "=": function () { scale(1 / 1.5); },
    "-": function () { scale(1.5); },
    Escape: showAll
  };
  svg.addEventListener("keydown", function (event) {
    if (event.target !== svg || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  svg.addEventListener("blur", hair.clear);
}
document.querySelectorAll(".picture > div").forEach(function (picture) {
  var svg = picture.querySelector("svg");
  if (svg) alive(picture, svg);
});
document.querySelector(".how").hidden = false;

// Words that choose: lines whose names, chart or figure have them all, and rows of tables.
var choice = document.querySelector(".choose");
choice.hidden = false;
choice.querySelector("input").addEventListener("input", function () {
  var words = wordsOf(this);
  document.querySelectorAll(".picture svg").forEach(function (svg) {
    var about = svg.closest("figure").dataset.about;
    charts(svg).forEach(function (chart) {
      chart.series.forEach(function (series) {
        // A part that contains others is lit where one of them is.
        var parts = [series].concat(Array.from(series.querySelectorAll(".rb-series")));
        var lit = parts.some(function (part) { return has([part.dataset.series, chart.heading, about].join(" "), words); });
        series.classList.toggle("dim", !lit);
      });
    });
  });
  var shown = 0;
  document.querySelectorAll("table").forEach(function (table) {
    var rows = filterRows(table, words);
    if (table.id === "cases-table") shown = rows;
  });
  choice.querySelector("output").textContent = words.length ? shown + " cases" : "";
});
