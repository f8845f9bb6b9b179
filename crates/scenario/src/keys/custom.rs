//! Keys of nodes whose kind is not built in.

use crate::diagnostic::Result;
use crate::form::{Form, Keys as _, Read, list_of_tables, table, wrong};
use crate::scalars::Name;
use crate::source::Span;
use crate::value::{Kind, Table, Value};

table! {
    /// A node of a kind that the program which reads the file provides; see [Extensions](extensions.md). It
    /// stands at the start of one direction of a link, behind the gateway if there is one. Packets of the
    /// other direction pass through it as well. All keys except those below depend on the kind.
    struct CustomKeys "[[nodes]]" {
        /// Unique name.
        name: Name,
        /// Kind of the node.
        kind: Name,
        /// Name of the link direction into which it sends. In a gateway file: the satellite hop.
        link: Name = "must be given in a scenario",
    }
}

/// One `[[nodes]]` table: the common keys, and the rest unread.
#[derive(Clone, Debug)]
pub(crate) struct Custom {
    pub(crate) keys: CustomKeys,
    pub(crate) span: Span,
    pub(crate) rest: Table,
}

impl Read for Vec<Custom> {
    const FORM: Form = Form::OpenList(CustomKeys::REF);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let one = |item: &Value| {
            let Kind::Table(table) = &item.kind else { return Err(wrong(item, key, "a table")) };
            let common = CustomKeys::REF.names();
            let rest =
                table.0.iter().filter(|entry| !common.contains(&entry.key.as_str())).cloned().collect();
            let keys = CustomKeys::pick(table, item.span, "[[nodes]]")?;
            Ok(Custom { keys, span: item.span, rest: Table(rest) })
        };
        list_of_tables(value, key)?.iter().map(one).collect()
    }
}
