//! Quantiles of a few numbers.

/// The least of the values that at least this many of a hundred do not exceed; zero of none.
pub(crate) fn of_hundred(values: &mut [f64], hundredths: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() * hundredths).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or_default()
}

/// The mean of the two values in the middle; zero of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    f64::midpoint(values[last / 2], values[last.div_ceil(2)])
}
