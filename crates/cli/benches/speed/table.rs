//! Medians, and the table that is printed.

use std::time::Duration;

/// The rows of all measurements.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

struct Row {
    what: String,
    figure: String,
    bound: String,
    holds: bool,
}

impl Table {
    /// A figure that may be at most `bound`.
    pub(crate) fn at_most(&mut self, what: &str, figure: f64, bound: f64, unit: &str) {
        self.row(what, format!("{figure:.2} {unit}"), format!("at most {bound} {unit}"), figure <= bound);
    }

    /// A figure that must be at least `bound`.
    pub(crate) fn at_least(&mut self, what: &str, figure: f64, bound: f64, unit: &str) {
        self.row(what, format!("{figure:.2} {unit}"), format!("at least {bound} {unit}"), figure >= bound);
    }

    /// A figure beside the others, without a bound.
    pub(crate) fn note(&mut self, what: &str, figure: f64, unit: &str) {
        self.row(what, format!("{figure:.2} {unit}"), String::new(), true);
    }

    fn row(&mut self, what: &str, figure: String, bound: String, holds: bool) {
        println!("  {what}: {figure}");
        self.0.push(Row { what: what.to_owned(), figure, bound, holds });
    }

    /// Prints all rows; whether every bound holds.
    pub(crate) fn print(&self) -> bool {
        let width = |of: fn(&Row) -> &str| self.0.iter().map(|row| of(row).len()).max().unwrap_or(0);
        let (what, figure, bound) = (width(|row| &row.what), width(|row| &row.figure), width(|row| &row.bound));
        println!();
        for row in &self.0 {
            let mark = match (row.bound.is_empty(), row.holds) {
                (true, _) => "",
                (false, true) => "  ok",
                (false, false) => "  MISSED",
            };
            let line = format!("{:what$}  {:>figure$}  {:bound$}{mark}", row.what, row.figure, row.bound);
            println!("{}", line.trim_end());
        }
        self.0.iter().all(|row| row.holds)
    }
}

/// The middle of some figures.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
