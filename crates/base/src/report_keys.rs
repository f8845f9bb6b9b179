//! Enums whose values have names in reports.

/// Defines an enum with `ALL`, its values in the order of definition, and `key`, the name of each in reports.
#[macro_export]
macro_rules! report_enum {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$doc:meta])* $value:ident = $key:literal,)+ }) => {
        $(#[$attribute])*
        pub enum $name {
            $($(#[$doc])* $value,)+
        }

        impl $name {
            /// All values, in the order reports list them.
            pub const ALL: [Self; [$($key),+].len()] = [$(Self::$value),+];

            /// The key used in reports.
            pub const fn key(self) -> &'static str {
                match self {
                    $(Self::$value => $key,)+
                }
            }
        }
    };
}
