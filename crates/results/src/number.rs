//! Numbers as text in tables and charts.

/// Formats a number with four significant digits or more. Values below 1 have four decimals.
pub fn figure(value: f64) -> String {
    let digits = match value.abs() {
        x if x >= 100_000.0 => 0,
        x if x >= 1000.0 => 1,
        x if x >= 100.0 => 2,
        x if x >= 1.0 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// Number of decimals of a figure with an uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimals(Option<usize>);

impl Decimals {
    /// Returns the decimals that show two significant digits of the uncertainty. Without one, a number has those of [`figure`].
    pub fn of(uncertainty: Option<f64>) -> Decimals {
        let uncertainty = uncertainty.filter(|x| x.is_finite() && *x > 0.0);
        Decimals(uncertainty.map(|x| (1.0 - x.log10().floor()).clamp(0.0, 6.0) as usize))
    }

    /// Formats a number.
    pub fn format(self, value: f64) -> String {
        match self.0 {
            Some(decimals) => format!("{value:.decimals$}"),
            None => figure(value),
        }
    }
}

/// Formats the label of a tick: a [`figure`] without trailing zeros.
pub fn tick_label(value: f64) -> String {
    let text = figure(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_two_digits_of_its_uncertainty() {
        let shown = |value, uncertainty| Decimals::of(uncertainty).format(value);
        assert_eq!(shown(0.41234, Some(0.055)), "0.412");
        assert_eq!(shown(0.41234, Some(0.0012)), "0.4123");
        assert_eq!(shown(10123.4, Some(350.0)), "10123");
        assert_eq!(shown(10123.4, Some(3.5)), "10123.4");
        assert_eq!(shown(6.0129, None), figure(6.0129));
        assert_eq!(shown(6.0129, Some(0.0)), figure(6.0129));
    }
}
