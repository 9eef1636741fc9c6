// Pictures that answer: figures where one points, a part made larger, lines on and off, and words that choose lines. All of it
// by pointer and by keyboard.

function element(name, attributes, parent) {
  var made = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
  parent.appendChild(made);
  return made;
}
// The part of a picture that is shown: `scale` is 1 for all of it. Ticks that are out of sight are written at the edges.
function zooming(svg, all) {
  var whole = svg.viewBox.baseVal, frame = { width: whole.width, height: whole.height }, marks = null;
  var zoom = { scale: 1, x: 0, y: 0 };
  function label(x, y, anchor, text) {
    var size = 12 * zoom.scale, halo = { class: "f-fg s-bg", "stroke-width": size / 3, "paint-order": "stroke" };
    element("text", Object.assign(halo, { x: x, y: y, "text-anchor": anchor, "font-size": size }), marks).textContent = text;
  }
  function write(chart) {
    var place = chart.place, scale = zoom.scale;
    var left = Math.max(place.x, zoom.x), right = Math.min(place.x + place.width, zoom.x + frame.width * scale);
    var top = Math.max(place.y, zoom.y), bottom = Math.min(place.y + place.height, zoom.y + frame.height * scale);
    if (left >= right || top >= bottom) return;
    var width = right - left, height = bottom - top;
    if (zoom.x + frame.width * scale > left && zoom.x > place.x - 30)
      ticks(chart.y, 1 - (bottom - place.y) / place.height, 1 - (top - place.y) / place.height, Math.max(2, height / (40 * scale)))
        .forEach(function (tick) {
          label(left + 4 * scale, place.y + place.height * (1 - tick.part) + 4 * scale, "start", tick.text);
        });
    if (zoom.y + frame.height * scale < place.y + place.height + 20)
      ticks(chart.x, (left + Math.min(width / 4, 70 * scale) - place.x) / place.width, (right - place.x) / place.width, Math.max(2, width / (90 * scale)))
        .forEach(function (tick) { label(place.x + place.width * tick.part, bottom - 4 * scale, "middle", tick.text); });
  }
  // Shows a part around a point, within the picture.
  zoom.to = function (x, y, scale) {
    zoom.scale = Math.max(0.03, Math.min(1, scale));
    var width = frame.width * zoom.scale, height = frame.height * zoom.scale;
    zoom.x = Math.max(0, Math.min(frame.width - width, x - width / 2));
    zoom.y = Math.max(0, Math.min(frame.height - height, y - height / 2));
    svg.setAttribute("viewBox", [zoom.x, zoom.y, width, height].join(" "));
    svg.classList.toggle("zoomed", zoom.scale < 1);
    if (marks) marks.remove();
    marks = element("g", { class: "rb-ticks", "aria-hidden": "true" }, svg);
    if (zoom.scale < 1) all.forEach(write);
  };
  zoom.part = function (from, to) {
    var part = Math.max(Math.abs(to.x - from.x) / frame.width, Math.abs(to.y - from.y) / frame.height);
    if (part > zoom.scale / 40) zoom.to((from.x + to.x) / 2, (from.y + to.y) / 2, part);
  };
  // Whether two places look like one.
  zoom.near = function (one, other) { return Math.abs(one - other) < 3 * zoom.scale; };
  // Moves the part that is shown to a point that is not in it.
  zoom.see = function (x, y) {
    var at = { x: zoom.x, y: zoom.y, width: frame.width * zoom.scale, height: frame.height * zoom.scale };
    if (!inside(at, x, y)) zoom.to(x, y, zoom.scale);
  };
  zoom.middle = function () { return { x: zoom.x + frame.width * zoom.scale / 2, y: zoom.y + frame.height * zoom.scale / 2 }; };
  return zoom;
}

// The cross-hair: a place in a chart, and the figures of all lines there.
function crossHair(picture, svg, zoom) {
  var tip = document.createElement("div"), mark = null, hair = { chart: null, x: 0 };
  tip.className = "tip";
  tip.hidden = true;
  picture.appendChild(tip);
  function add(kind, text) {
    var row = document.createElement(kind);
    row.textContent = text;
    tip.appendChild(row);
  }
  hair.clear = function () {
    tip.hidden = true;
    if (mark) mark.remove();
    mark = hair.chart = null;
  };
  // Points of the lines that are shown.
  hair.points = function (chart) {
    var found = [];
    chart.lines.forEach(function (line) {
      if (!line.series.closest(".off")) line.points.forEach(function (point) { found.push({ line: line, point: point }); });
    });
    return found;
  };
  // Goes to the points nearest to `x`; the tip stands at `at`, in pixels of the window, or at the cross-hair.
  hair.go = function (chart, x, at) {
    hair.clear();
    var found = hair.points(chart), place = chart.place;
    if (!found.length) return;
    var to = found.reduce(function (best, one) { return Math.abs(one.point.x - x) < Math.abs(best.point.x - x) ? one : best; }).point;
    hair.chart = chart;
    hair.x = to.x;
    // Of each line the point that is nearest.
    found = chart.lines.map(function (line) {
      var own = found.filter(function (one) { return one.line === line && zoom.near(one.point.x, to.x); });
      return own.sort(function (a, b) { return Math.abs(a.point.x - to.x) - Math.abs(b.point.x - to.x); })[0];
    }).filter(Boolean);
    mark = element("g", { class: "rb-hover", "aria-hidden": "true" }, svg);
    element("path", { d: "M" + to.x + " " + place.y + "v" + place.height, class: "s-rule", fill: "none", "stroke-width": zoom.scale }, mark);
    tip.textContent = "";
    tip.setAttribute("aria-live", at ? "off" : "polite");
    add("b", WRITTEN[chart.x.unit](to.values[0]) || chart.heading);
    found.sort(function (a, b) { return a.point.y - b.point.y; }).forEach(function (one) {
      element("circle", { cx: one.point.x, cy: one.point.y, r: 4 * zoom.scale, class: one.line.colour, fill: "none", "stroke-width": 2 * zoom.scale }, mark);
      add("div", one.line.series.dataset.series + ": " + WRITTEN[chart.y.unit](one.point.values[1]));
    });
    tip.hidden = false;
    if (!at) zoom.see(to.x, found[0].point.y);
    at = at || new DOMPoint(to.x, found[0].point.y).matrixTransform(svg.getScreenCTM());
    var frame = picture.getBoundingClientRect(), left = at.x - frame.left + 14;
    tip.style.left = Math.max(0, left + tip.offsetWidth > frame.width ? left - tip.offsetWidth - 28 : left) + "px";
    tip.style.top = Math.max(0, at.y - frame.top + 14) + "px";
  };
  // Goes so many points on, or to the chart so many on.
  hair.step = function (by) {
    var xs = [];
    hair.points(hair.chart).map(function (one) { return one.point.x; }).sort(function (a, b) { return a - b; })
      .forEach(function (x) { if (!xs.length || !zoom.near(xs[xs.length - 1], x)) xs.push(x); });
    var now = xs.findIndex(function (x) { return zoom.near(x, hair.x); });
    hair.go(hair.chart, xs[Math.max(0, Math.min(xs.length - 1, now + by))]);
  };
  return hair;
}

function alive(picture, svg) {
  var all = charts(svg), zoom = zooming(svg, all), hair = crossHair(picture, svg, zoom), from = null;
  function at(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  }
  svg.addEventListener("pointerdown", function (event) { from = event.button === 0 && event.pointerType === "mouse" ? at(event) : null; });
  svg.addEventListener("pointerup", function (event) {
    if (!from) return;
    hair.clear();
    zoom.part(from, at(event));
    from = null;
  });
  svg.addEventListener("dblclick", function () { zoom.to(0, 0, 1); });
  svg.addEventListener("pointermove", function (event) {
    var here = at(event);
    var chart = all.find(function (chart) { return inside(chart.place, here.x, here.y); });
    if (chart) hair.go(chart, here.x, { x: event.clientX, y: event.clientY });
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
    svg.setAttribute("role", "group");
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

  // The keys: to enlarge each picture, and to go through the points of one that has them.
  function withPoints() { return all.filter(function (chart) { return hair.points(chart).length; }); }
  svg.setAttribute("role", "group");
  svg.setAttribute("tabindex", "0");
  function enlarge(by) {
    var around = zoom.middle(), chart = hair.chart;
    if (chart) around = { x: hair.x, y: hair.points(chart).find(function (one) { return zoom.near(one.point.x, hair.x); }).point.y };
    zoom.to(around.x, around.y, zoom.scale * by);
    if (chart) hair.go(chart, hair.x);
  }
  function toPoint(by) {
    var first = withPoints()[0];
    if (hair.chart) hair.step(by);
    else if (first) hair.go(first, first.place.x + (by > 0 ? 0 : first.place.width));
  }
  function toChart(by) {
    var told = withPoints(), next = told[told.indexOf(hair.chart) + by];
    if (next) hair.go(next, next.place.x);
  }
  var KEYS = {
    ArrowRight: function () { toPoint(1); },
    ArrowLeft: function () { toPoint(-1); },
    ArrowDown: function () { toChart(1); },
    ArrowUp: function () { toChart(-1); },
    "+": function () { enlarge(1 / 1.5); },
    "=": function () { enlarge(1 / 1.5); },
    "-": function () { enlarge(1.5); },
    Escape: function () { hair.clear(); zoom.to(0, 0, 1); }
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

// Words that choose: lines whose names, chart or figure have them all, and rows of all cases.
var choice = document.querySelector(".choose");
choice.hidden = false;
choice.querySelector("input").addEventListener("input", function () {
  var words = wordsOf(this);
  document.querySelectorAll(".picture svg").forEach(function (svg) {
    var subtitle = svg.closest("figure").querySelector("figcaption .hidden").textContent;
    charts(svg).forEach(function (chart) {
      chart.series.forEach(function (series) {
        // A part that contains others is lit where one of them is.
        var parts = [series].concat(Array.from(series.querySelectorAll(".rb-series")));
        var lit = parts.some(function (part) { return has([part.dataset.series, chart.heading, subtitle].join(" "), words); });
        series.classList.toggle("dim", !lit);
      });
    });
  });
  var shown = filterRows(document.getElementById("cases-table"), words);
  choice.querySelector("output").textContent = words.length ? shown + " cases" : "";
});
