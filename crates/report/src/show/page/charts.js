// What a picture says of itself: its charts, their axes, and the values of their lines.

// Values have three digits, or as many as a step between two of them needs.
function figure(value, step) {
  if (value === 0) return "0";
  if (step) return value.toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step) - 1e-9))));
  var size = Math.floor(Math.log10(Math.abs(value)));
  return size < -4 || size > 8 ? value.toExponential(2) : value.toFixed(Math.max(0, Math.min(6, 2 - size)));
}
function inUnits(value, step, units, factor) {
  var index = 0;
  while (index < units.length - 1 && Math.abs(value) >= factor) {
    value /= factor;
    step /= factor;
    index += 1;
  }
  return figure(value, step) + "\u00a0" + units[index];
}
var WRITTEN = {
  plain: figure,
  bytes: function (value, step) { return inUnits(Math.round(value), step, ["B", "KiB", "MiB", "GiB"], 1024); },
  ns: function (value, step) { return inUnits(value, step, ["ns", "\u00b5s", "ms", "s"], 1000); },
  // At an axis, whose title says that it has percentiles, the figure alone.
  tail: function (value, step) { return (step ? "" : "p") + Number((100 - 100 / value).toPrecision(value > 999 ? 7 : 4)); }
};

// An axis, as the picture has it: kind, ends, unit and title. The title says what is measured, and often in what:
// "throughput, Gb/s", "Gb/s (log)". Where it does not, the title of the figure does.
function axis(text, figureTitle) {
  var parts = text.split(" "), title = parts.slice(4).join(" ").split(/ \(|, on /)[0];
  if (title.indexOf(":") >= 0) title = figureTitle;
  return { log: parts[0] === "log", min: Number(parts[1]), max: Number(parts[2]), unit: parts[3], title: title.split(", "), names: [] };
}
// Where a value is on an axis, from 0 to 1, and the value that is there.
function part(of, value) {
  return of.log ? Math.log(value / of.min) / Math.log(of.max / of.min) : (value - of.min) / (of.max - of.min);
}
function valueAt(of, part) {
  return of.log ? of.min * Math.pow(of.max / of.min, part) : of.min + (of.max - of.min) * part;
}
// A value with its unit; of an axis with names the nearest.
function written(of, value) {
  if (of.unit === "named") {
    var far = function (name) { return Math.abs(name.part - part(of, value)); };
    return of.names.reduce(function (best, name) { return far(name) < far(best) ? name : best; }, { part: Infinity, text: "" }).text;
  }
  var unit = of.unit === "plain" ? of.title[of.title.length - 1] : "";
  return WRITTEN[of.unit](value) + (unit ? "\u00a0" + unit : "");
}

// Places of round values in a part of an axis, at most so many, each with its words.
function ticks(of, from, to, most) {
  function shown(all) { return all.filter(function (tick) { return tick.part >= from - 1e-9 && tick.part <= to + 1e-9; }); }
  function of_values(values, step) {
    return shown(values.map(function (value) {
      return { part: part(of, value), text: WRITTEN[of.unit](value, step || Math.pow(10, Math.floor(Math.log10(value)))) };
    }));
  }
  if (of.unit === "named") return shown(of.names);
  var low = valueAt(of, from), high = valueAt(of, to), power = of.unit === "bytes" ? 2 : 10, found = [];
  if (of.log && (high / low > 5 || of.unit === "tail")) {
    // All of 1, 2 and 5 where there is room, or powers, or each so many powers; the median is a tail's first.
    [[1, 2, 5], [1]].concat([2, 3, 4, 6, 8].map(function (every) { return [every]; })).some(function (bases, step) {
      var every = step < 2 ? 1 : bases[0], values = of.unit === "tail" && step ? [2] : [];
      if (power === 2 && step === 0) return false;
      for (var scale = Math.floor(Math.log(low) / Math.log(power) / every) * every; Math.pow(power, scale) <= high; scale += every)
        (step < 2 ? bases : [1]).forEach(function (base) { values.push(base * Math.pow(power, scale)); });
      found = of_values(values);
      return found.length <= most;
    });
    if (found.length > 1) return found;
  }
  var rough = (high - low) / most, ten = Math.pow(10, Math.floor(Math.log10(rough))), values = [];
  var step = [1, 2, 5, 10].map(function (base) { return base * ten; }).find(function (step) { return step >= rough; }) || 10 * ten;
  for (var count = Math.ceil(low / step); count * step <= high; count += 1) values.push(count * step);
  return of_values(values, step);
}

function box(rect) {
  var of = function (name) { return Number(rect.getAttribute(name)); };
  return { x: of("x"), y: of("y"), width: of("width"), height: of("height") };
}
// The names that stand at an axis.
function names(place, group, across) {
  return Array.from(group.querySelectorAll("text"), function (text) {
    var x = (text.getAttribute("x") - place.x) / place.width, y = (text.getAttribute("y") - 4 - place.y) / place.height;
    return { part: across ? x : 1 - y, text: text.textContent };
  });
}
// The measured points of a line, and where they are, from 0 to 1; what lies above or below the chart is at its edge.
function points(chart, text) {
  if (!text) return [];
  return text.split(",").map(function (pair) {
    var values = pair.split(" ").map(Number), up = part(chart.y, values[1]);
    return { x: part(chart.x, values[0]), y: Math.max(0, Math.min(1, Number.isNaN(up) ? 0 : up)), values: values };
  });
}

// The charts of a picture in their order. Each is followed by what belongs to it: `series` are all parts that have a name,
// `lines` those that have points, `shown` is the part of it that is shown.
function charts(svg) {
  var all = [], headings = svg.querySelectorAll(".rb-heading"), title = svg.querySelector("title").textContent;
  svg.querySelectorAll(".rb-plot, .rb-series").forEach(function (element) {
    var chart = all[all.length - 1];
    if (element.classList.contains("rb-plot")) {
      var place = box(element), axes = element.nextElementSibling, marks = axes.querySelectorAll(".rb-ticks");
      var x = axis(element.dataset.x, title), y = axis(element.dataset.y, title);
      x.names = names(place, marks[0], true);
      y.names = names(place, marks[1], false);
      all.push({ place: place, axes: axes, marks: marks, x: x, y: y, heading: "", series: [], lines: [], shown: whole() });
    } else if (chart) {
      chart.series.push(element);
      var found = points(chart, element.dataset.points), painted = element.querySelector("[class*='s-']");
      if (found.length) chart.lines.push({ series: element, painted: painted, points: found });
    }
  });
  // Of charts beside each other the outer ones have titles.
  ["x", "y"].forEach(function (which) {
    all.forEach(function (chart, index) {
      var titled = all.slice(0, index + 1).reverse().concat(all).find(function (one) { return one[which].title[0]; });
      if (titled) chart[which].title = titled[which].title;
    });
  });
  if (headings.length === all.length)
    all.forEach(function (chart, index) { chart.heading = headings[index].dataset.heading; });
  return all;
}
function whole() { return { left: 0, right: 1, bottom: 0, top: 1 }; }
