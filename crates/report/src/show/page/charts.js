// What a picture says of itself: its charts, their axes, and the figures of their lines. It must not know how they are shown.

// Figures have three digits, or as many as a step between two of them needs.
function figure(value, step) {
  if (step) return value.toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step) - 1e-9))));
  if (value === 0) return "0";
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
  share: function (value, step) { return figure(value * 100, step * 100) + "\u00a0%"; },
  tail: function (value) { return "p" + Number((100 - 100 / value).toPrecision(value > 999 ? 7 : 4)); },
  named: function () { return ""; }
};

// An axis: kind, ends and unit, as the picture has them.
function axis(text) {
  var parts = text.split(" ");
  return { log: parts[0] === "log", min: Number(parts[1]), max: Number(parts[2]), unit: parts[3] };
}
// Where a figure is on an axis, from 0 to 1, and the figure that is there.
function part(of, value) {
  return of.log ? Math.log(value / of.min) / Math.log(of.max / of.min) : (value - of.min) / (of.max - of.min);
}
function valueAt(of, part) {
  return of.log ? of.min * Math.pow(of.max / of.min, part) : of.min + (of.max - of.min) * part;
}

// Round figures of a part of an axis, about so many, with the words for each.
function ticks(of, from, to, wanted) {
  var low = valueAt(of, from), high = valueAt(of, to), found = [], step = 0;
  if (of.unit === "named") return [];
  if (of.log && (high / low > 5 || of.unit === "tail")) {
    var bases = of.unit === "bytes" ? [1] : [1, 2, 5], power = of.unit === "bytes" ? 2 : 10;
    for (var scale = Math.pow(power, Math.floor(Math.log(low) / Math.log(power))); scale <= high; scale *= power)
      bases.forEach(function (base) { found.push(base * scale); });
  } else {
    var rough = (high - low) / wanted, ten = Math.pow(10, Math.floor(Math.log10(rough)));
    step = [1, 2, 5, 10].map(function (base) { return base * ten; }).find(function (step) { return step >= rough; }) || 10 * ten;
    for (var count = Math.ceil(low / step); count * step <= high; count += 1) found.push(count * step);
  }
  found = found.filter(function (value) { return value >= low && value <= high; });
  var every = Math.ceil(found.length / wanted);
  return found.filter(function (value, index) { return index % every === 0; }).map(function (value) {
    return { part: part(of, value), text: WRITTEN[of.unit](value, step) };
  });
}

function box(rect) {
  var of = function (name) { return Number(rect.getAttribute(name)); };
  return { x: of("x"), y: of("y"), width: of("width"), height: of("height") };
}
function inside(place, x, y) {
  return x >= place.x && x <= place.x + place.width && y >= place.y && y <= place.y + place.height;
}

// The measured points of a line, and where they are; what lies above or below the chart is at its edge.
function points(chart, text) {
  if (!text) return [];
  return text.split(",").map(function (pair) {
    var values = pair.split(" ").map(Number), place = chart.place, up = part(chart.y, values[1]);
    up = Math.max(0, Math.min(1, Number.isNaN(up) ? 0 : up));
    return { x: place.x + place.width * part(chart.x, values[0]), y: place.y + place.height * (1 - up), values: values };
  });
}

// The charts of a picture in their order. Each is followed by what belongs to it: `series` are all parts that have a name,
// `lines` those that have points.
function charts(svg) {
  var all = [], headings = svg.querySelectorAll(".rb-heading");
  svg.querySelectorAll(".rb-plot, .rb-series").forEach(function (element) {
    var chart = all[all.length - 1];
    if (element.classList.contains("rb-plot")) {
      all.push({ place: box(element), x: axis(element.dataset.x), y: axis(element.dataset.y), heading: "", series: [], lines: [] });
    } else if (chart) {
      chart.series.push(element);
      var found = points(chart, element.dataset.points), painted = element.querySelector("[class*='s-']");
      var colour = painted && painted.getAttribute("class").match(/\bs-\S+/);
      if (found.length) chart.lines.push({ series: element, colour: colour ? colour[0] : "s-fg", points: found });
    }
  });
  if (headings.length === all.length)
    all.forEach(function (chart, index) { chart.heading = headings[index].dataset.heading; });
  return all;
}
