//! Enums whose values have names.

/// Declares an enum whose values have names, and a function that returns the name.
#[macro_export]
macro_rules! named {
    (
        $( #[$of_type:meta] )*
        $vis:vis enum $Name:ident { $( $( #[$of_value:meta] )* $Value:ident = $name:literal, )+ }
    ) => {
        $( #[$of_type] )*
        $vis enum $Name { $( $( #[$of_value] )* $Value, )+ }

        impl $Name {
            /// Returns the name.
            #[allow(dead_code, reason = "not every enum prints its values")]
            $vis const fn name(self) -> &'static str {
                match self { $( $Name::$Value => $name, )+ }
            }
        }
    };
}
