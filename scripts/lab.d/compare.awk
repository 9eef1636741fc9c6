# Ratios from the samples of scripts/compare-perftest: lines "op qps size tool gbit_per_s mmsg_per_s".
# `noise` is half the interquartile range of perftest's own samples over their median. Exits 1 if a ratio is
# below `least`, 2 if a tool moved nothing.
function sorted(list, v,    n, i, j, t) {
  n = split(list, v, " ")
  for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
  return n
}
function quantile(list, q,    n, v, at, low) {
  n = sorted(list, v)
  at = 1 + (n - 1) * q
  low = int(at)
  return low < n ? v[low] + (at - low) * (v[low + 1] - v[low]) : v[n]
}
{
  cell = $1 " " $3 " " $2
  if (!(cell in seen)) { seen[cell] = 1; cells[++count] = cell }
  rate[cell, $4] = rate[cell, $4] " " $6
}
END {
  printf "%-6s %8s %4s %16s %16s %7s %7s\n", "op", "bytes", "QPs", "perftest msg/s", "rocebench msg/s", "ratio", "noise"
  for (i = 1; i <= count; i++) {
    split(cells[i], part, " ")
    theirs = quantile(rate[cells[i], "perftest"], 0.5); ours = quantile(rate[cells[i], "rocebench"], 0.5)
    if (theirs <= 0 || ours <= 0) { printf "%s: no figure\n", cells[i]; broken++; continue }
    noise = (quantile(rate[cells[i], "perftest"], 0.75) - quantile(rate[cells[i], "perftest"], 0.25)) / 2 / theirs
    printf "%-6s %8d %4d %16.0f %16.0f %7.3f %6.0f%%\n", part[1], part[2], part[3], theirs * 1e6, ours * 1e6, ours / theirs, noise * 100
    if (ours / theirs < least) low++
  }
  if (low) printf "%d of %d cases are below %s\n", low, count, least
  exit broken ? 2 : low ? 1 : 0
}
