//! The figures that perftest's programs print.

pub fn rows(text: &str) -> Vec<Vec<f64>> {
    text.lines()
        .skip_while(|line| !line.starts_with(" #bytes"))
        .filter_map(|line| line.split_whitespace().map(|it| it.parse().ok()).collect())
        .filter(|row: &Vec<f64>| row.len() >= 4)
        .collect()
}
