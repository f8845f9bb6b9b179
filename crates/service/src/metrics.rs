//! A page of metrics in Prometheus's text format 0.0.4.

use core::fmt::Write as _;

/// Media type of a page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics of one service. All names begin alike, and each has a label with the name of the service.
#[derive(Debug)]
pub struct Page {
    out: String,
    prefix: &'static str,
    own: String,
}

/// The labels of a value.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    /// A page whose names begin with `prefix`, of the service `name`; `label` is what it is.
    pub fn new(prefix: &'static str, label: &str, name: &str) -> Self {
        Self { out: String::new(), prefix, own: format!("{label}=\"{}\"", escaped(name)) }
    }

    /// Announces a metric; one whose name ends in `_total` is a counter.
    pub fn head(&mut self, metric: &str, help: &str) {
        let kind = if metric.ends_with("_total") { "counter" } else { "gauge" };
        let _ = writeln!(self.out, "# HELP {}{metric} {help}", self.prefix);
        let _ = writeln!(self.out, "# TYPE {}{metric} {kind}", self.prefix);
    }

    /// Adds a value of the metric announced last.
    pub fn value(&mut self, metric: &str, labels: Labels<'_>, value: f64) {
        let mut all = self.own.clone();
        for (label, text) in labels {
            let _ = write!(all, ",{label}=\"{}\"", escaped(text));
        }
        let _ = writeln!(self.out, "{}{metric}{{{all}}} {value}", self.prefix);
    }

    /// Adds a metric with one value.
    pub fn one(&mut self, metric: &str, help: &str, value: f64) {
        self.head(metric, help);
        self.value(metric, &[], value);
    }

    /// Adds a metric with a value for each text of a label.
    pub fn many(&mut self, metric: &str, help: &str, label: &str, values: &[(impl AsRef<str>, u64)]) {
        self.head(metric, help);
        for (text, value) in values {
            self.value(metric, &[(label, text.as_ref())], *value as f64);
        }
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        self.out
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
