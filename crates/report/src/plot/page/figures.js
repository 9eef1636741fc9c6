(function () {
  "use strict";

  // Pictures that answer: figures where one points, lines on and off, a part made larger, and words that choose lines.
  var SVG = "http://www.w3.org/2000/svg";
  function element(name, attributes, parent) {
    var made = document.createElementNS(SVG, name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    parent.appendChild(made);
    return made;
  }
  function number(value) {
    if (value === 0) return "0";
    var size = Math.floor(Math.log10(Math.abs(value)));
    return size < -4 || size > 8 ? value.toExponential(2) : value.toFixed(Math.max(0, Math.min(6, 2 - size)));
  }
  function inUnits(value, units, step) {
    var index = 0;
    while (index < units.length - 1 && Math.abs(value) >= step) { value /= step; index += 1; }
    return number(value) + "\u00a0" + units[index];
  }
  var WRITTEN = {
    plain: number,
    bytes: function (value) { return inUnits(Math.round(value), ["B", "KiB", "MiB", "GiB"], 1024); },
    ns: function (value) { return inUnits(value, ["ns", "\u00b5s", "ms", "s"], 1000); },
    share: function (value) { return number(value * 100) + "\u00a0%"; },
    tail: function (value) { return "p" + Number((100 - 100 / value).toPrecision(value > 999 ? 7 : 4)); },
    named: function () { return ""; }
  };

  // An axis: kind, ends, unit and title, as the picture has them.
  function axis(text) {
    var parts = text.split(" ");
    return { log: parts[0] === "log", min: Number(parts[1]), max: Number(parts[2]), unit: parts[3], title: parts.slice(4).join(" ") };
  }
  function valueAt(of, part) {
    if (!of.log) return of.min + (of.max - of.min) * part;
    return of.min * Math.pow(of.max / of.min, part);
  }
  function written(of, part) { return WRITTEN[of.unit](valueAt(of, part)); }

  function box(rect) {
    var of = function (name) { return Number(rect.getAttribute(name)); };
    return { x: of("x"), y: of("y"), width: of("width"), height: of("height") };
  }
  function inside(place, x, y) {
    return x >= place.x && x <= place.x + place.width && y >= place.y && y <= place.y + place.height;
  }
  // The charts of a picture, each with its lines: names and the places of their points.
  function charts(svg) {
    var bold = Array.from(svg.querySelectorAll("text[font-weight=bold]"));
    var all = Array.from(svg.querySelectorAll(".rb-plot")).map(function (rect) {
      var place = box(rect);
      var heading = bold.filter(function (text) {
        var above = place.y - Number(text.getAttribute("y")), left = place.x - Number(text.getAttribute("x"));
        return above > 0 && above < 50 && left > -1 && left < 120;
      }).pop();
      return { place: place, x: axis(rect.dataset.x), y: axis(rect.dataset.y), heading: heading ? heading.textContent : "", lines: [] };
    });
    svg.querySelectorAll(".rb-series").forEach(function (series) {
      Array.from(series.children).forEach(function (path) {
        var data = path.getAttribute("d") || "";
        if (path.getAttribute("fill") !== "none" || path.getAttribute("stroke-width") !== "2" || /[^ML0-9. -]/.test(data)) return;
        var points = data.slice(1).split(/[ML]/).map(function (pair) { return pair.split(" ").map(Number); });
        var chart = all.find(function (chart) { return inside(chart.place, points[0][0], points[0][1]); }) ||
          all.find(function (chart) { return inside(chart.place, points[0][0] + 1, points[0][1] + 1); });
        if (chart) chart.lines.push({ series: series, colour: path.getAttribute("class"), points: points });
      });
    });
    return all;
  }
  function nearest(points, x) {
    return points.reduce(function (best, point) { return Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best; });
  }

  function alive(picture, svg) {
    var all = null, mark = null, whole = svg.getAttribute("viewBox"), from = null;
    var tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    picture.appendChild(tip);
    function clear() {
      tip.hidden = true;
      if (mark) mark.remove();
      mark = null;
    }
    function at(event) {
      var point = new DOMPoint(event.clientX, event.clientY);
      return point.matrixTransform(svg.getScreenCTM().inverse());
    }
    function show(event) {
      clear();
      if (!all) all = charts(svg);
      var here = at(event);
      var chart = all.find(function (chart) { return inside(chart.place, here.x, here.y); });
      if (!chart) return;
      var found = chart.lines.filter(function (line) { return !line.series.classList.contains("off"); }).map(function (line) {
        return { line: line, point: nearest(line.points, here.x) };
      });
      if (!found.length) return;
      var x = found.reduce(function (best, one) { return Math.abs(one.point[0] - here.x) < Math.abs(best - here.x) ? one.point[0] : best; }, Infinity);
      found = found.filter(function (one) { return Math.abs(one.point[0] - x) < 3; });
      var place = chart.place;
      mark = element("g", { class: "rb-hover", "aria-hidden": "true" }, svg);
      element("path", { d: "M" + x + " " + place.y + "v" + place.height, class: "s-rule", fill: "none" }, mark);
      tip.textContent = "";
      var head = document.createElement("b");
      head.textContent = written(chart.x, (x - place.x) / place.width) || chart.heading;
      tip.appendChild(head);
      found.sort(function (a, b) { return a.point[1] - b.point[1]; }).forEach(function (one) {
        element("circle", { cx: x, cy: one.point[1], r: 4, class: one.line.colour, fill: "none", "stroke-width": 2 }, mark);
        var row = document.createElement("div");
        row.textContent = one.line.series.dataset.series + ": " + written(chart.y, 1 - (one.point[1] - place.y) / place.height);
        tip.appendChild(row);
      });
      var frame = picture.getBoundingClientRect();
      tip.hidden = false;
      var left = event.clientX - frame.left + 14;
      tip.style.left = Math.max(0, left + tip.offsetWidth > frame.width ? left - tip.offsetWidth - 28 : left) + "px";
      tip.style.top = Math.max(0, event.clientY - frame.top + 14) + "px";
    }

    // A part that was dragged over is shown alone; a double click shows all again.
    svg.addEventListener("pointerdown", function (event) { from = event.button === 0 && event.pointerType === "mouse" ? at(event) : null; });
    svg.addEventListener("pointerup", function (event) {
      if (!from) return;
      var to = at(event), width = Math.abs(to.x - from.x), height = Math.abs(to.y - from.y);
      var frame = svg.viewBox.baseVal;
      if (width > frame.width / 40 && height > frame.height / 40) {
        clear();
        svg.setAttribute("viewBox", [Math.min(from.x, to.x), Math.min(from.y, to.y), width, height].join(" "));
        svg.classList.add("zoomed");
      }
      from = null;
    });
    svg.addEventListener("dblclick", function () {
      svg.setAttribute("viewBox", whole);
      svg.classList.remove("zoomed");
    });
    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerleave", clear);

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
      }
      key.addEventListener("click", turn);
      key.addEventListener("keydown", function (event) {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        turn();
      });
    });
  }
  document.querySelectorAll(".picture > div").forEach(function (picture) {
    var svg = picture.querySelector("svg");
    if (svg) alive(picture, svg);
  });

  // Words that choose: lines whose names, chart or figure have them all, and rows of all tables.
  var choice = document.querySelector(".choose");
  if (choice) {
    var input = choice.querySelector("input"), output = choice.querySelector("output");
    choice.hidden = false;
    input.addEventListener("input", function () {
      var words = input.value.toLowerCase().split(/\s+/).filter(Boolean), shown = 0;
      var has = function (text) {
        text = text.toLowerCase();
        return words.every(function (word) { return text.indexOf(word) >= 0; });
      };
      document.querySelectorAll(".picture svg").forEach(function (svg) {
        var of = svg.closest("figure").querySelector("figcaption .hidden");
        charts(svg).forEach(function (chart) {
          chart.lines.forEach(function (line) {
            var text = [line.series.dataset.series, chart.heading, of ? of.textContent : ""].join(" ");
            line.series.classList.toggle("dim", !has(text));
          });
        });
      });
      document.querySelectorAll("#cases-table tbody tr").forEach(function (row) {
        row.hidden = !has(row.textContent);
        if (!row.hidden) shown += 1;
      });
      output.textContent = words.length ? shown + " cases" : "";
    });
  }
})();
