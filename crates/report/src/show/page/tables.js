// Tables, paper and links.

// Sorting: a header becomes a button; figures are compared as figures, and what was not measured comes last.
function value(row, column) {
  var text = row.cells[column].textContent.trim();
  if (text === "-" || text === "") return null;
  var number = Number(text);
  return Number.isNaN(number) ? text : number;
}
function compare(a, b, down) {
  if (a === null || b === null) return (a === null) - (b === null);
  var order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  return down ? -order : order;
}
function sort(table, header) {
  var column = header.cellIndex;
  var down = header.getAttribute("aria-sort") === "ascending";
  table.querySelectorAll("th[aria-sort]").forEach(function (other) { other.removeAttribute("aria-sort"); });
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  var body = table.tBodies[0];
  Array.from(body.rows)
    .map(function (row) { return { row: row, key: value(row, column) }; })
    .sort(function (a, b) { return compare(a.key, b.key, down); })
    .forEach(function (entry) { body.appendChild(entry.row); });
}
document.querySelectorAll("table.sortable").forEach(function (table) {
  table.tHead.querySelectorAll("th").forEach(function (header) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    header.textContent = "";
    header.appendChild(button);
    button.addEventListener("click", function () { sort(table, header); });
  });
});

// Paper cannot be opened: every short table is printed, and closed again afterwards.
var opened = [];
window.addEventListener("beforeprint", function () {
  opened = Array.from(document.querySelectorAll("details:not([open]):not(.long)"));
  opened.forEach(function (details) { details.open = true; });
});
window.addEventListener("afterprint", function () {
  opened.forEach(function (details) { details.open = false; });
  opened = [];
});

// A link to something in a closed part opens it.
function reveal() {
  var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  var details = target && target.closest("details");
  if (details && !details.open) { details.open = true; target.scrollIntoView(); }
}
window.addEventListener("hashchange", reveal);
reveal();
