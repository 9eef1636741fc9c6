// Words that choose, and rows that have them all.

function wordsOf(input) { return input.value.toLowerCase().split(/\s+/).filter(Boolean); }

// A number is a whole one: 4 is not in 64 or 0.4.
function has(text, words) {
  text = text.toLowerCase();
  var numbers = text.match(/[0-9]+(\.[0-9]+)?/g) || [];
  return words.every(function (word) {
    return /^[0-9.]+$/.test(word) ? numbers.indexOf(word) >= 0 : text.indexOf(word) >= 0;
  });
}
function filterRows(table, words) {
  return Array.from(table.tBodies[0].rows).filter(function (row) {
    row.hidden = !has(Array.from(row.cells, function (cell) { return cell.textContent; }).join(" "), words);
    return !row.hidden;
  }).length;
}
