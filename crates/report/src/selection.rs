//! The part of a metric in brackets: a name, or the beginning of names.

/// What `[name]` or `[prefix*]` selects; without it everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Option<String>);

impl Selection {
    /// Parses what follows the name of a metric, and returns what is left.
    ///
    /// # Errors
    /// Why it is no selection, in words.
    pub fn parse(rest: &str) -> Result<(Self, &str), &'static str> {
        let Some(inside) = rest.strip_prefix('[') else { return Ok((Self(None), rest)) };
        let (name, after) = inside.split_once(']').ok_or("the `[` is not closed by `]`")?;
        if name.is_empty() {
            return Err("name something between `[` and `]`");
        }
        Ok((Self(Some(name.to_owned())), after))
    }

    /// Returns the text in brackets.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// True if `name` is the selected one, begins with the selected prefix, or nothing is selected.
    pub fn selects(&self, name: &str) -> bool {
        let fits = |wanted: &str| wanted.strip_suffix('*').map_or(name == wanted, |p| name.starts_with(p));
        self.name().is_none_or(fits)
    }
}
