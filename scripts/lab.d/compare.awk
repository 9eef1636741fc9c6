# Ratios from the samples of scripts/compare-perftest: lines "op qps size tool gbit_per_s mmsg_per_s".
# Exits 1 if a ratio is below `least`.
function median(list,    n, i, j, t, v) {
  n = split(list, v, " ")
  for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
  return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
{
  cell = $1 " " $3 " " $2
  if (!(cell in seen)) { seen[cell] = 1; cells[++count] = cell }
  rate[cell, $4] = rate[cell, $4] " " $6
}
END {
  printf "%-6s %8s %4s %16s %16s %7s\n", "op", "bytes", "QPs", "perftest msg/s", "rocebench msg/s", "ratio"
  for (i = 1; i <= count; i++) {
    split(cells[i], part, " ")
    theirs = median(rate[cells[i], "perftest"]); ours = median(rate[cells[i], "rocebench"])
    ratio = theirs > 0 ? ours / theirs : 0
    printf "%-6s %8d %4d %16.0f %16.0f %7.3f\n", part[1], part[2], part[3], theirs * 1e6, ours * 1e6, ratio
    if (ratio < least) low++
  }
  if (low) { printf "%d of %d cases are below %s\n", low, count, least; exit 1 }
}
