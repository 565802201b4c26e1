// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Choices: enums whose values have names in configurations.

/// Declares the enum of a choice, with the name of each value: `pub enum Fate { Pass = "pass", Drop = "drop", }`.
#[macro_export]
macro_rules! choice {
    (
        $(#[$about:meta])*
        $vis:vis enum $choice:ident {
            $( $(#[$doc:meta])* $value:ident = $name:literal, )+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $choice {
            $( $(#[$doc])* $value, )+
        }

        impl $choice {
            /// Its name in configurations.
            $vis const fn name(self) -> &'static str {
                match self {
                    $( $choice::$value => $name, )+
                }
            }
        }

        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $choice {
            type Err = $crate::Wrong;

            fn from_str(text: &str) -> Result<$choice, $crate::Wrong> {
                $crate::Value::read(text, ())
            }
        }

        impl $crate::Value for $choice {
            type Bounds = ();
            const PLACEHOLDER: &'static str = "NAME";

            fn read(text: &str, (): ()) -> Result<$choice, $crate::Wrong> {
                match text {
                    $( $name => Ok($choice::$value), )+
                    _ => Err($crate::Wrong::unlike::<$choice>(())),
                }
            }

            fn text(&self) -> String {
                self.name().to_owned()
            }

            fn words((): ()) -> String {
                $crate::alternatives(Self::names())
            }

            fn names() -> &'static [&'static str] {
                &[$($name),+]
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::Value;

    choice! {
        enum Fate {
            Pass = "pass",
            Drop = "drop",
        }
    }

    #[test]
    fn each_name_is_a_value() {
        for name in Fate::names() {
            assert_eq!(Fate::read(name, ()).map(Fate::name), Ok(*name));
        }
        assert_eq!("drop".parse(), Ok(Fate::Drop));
        assert_eq!(Fate::Drop.to_string(), "drop");
        let wrong = Fate::read("Drop", ()).unwrap_err().to_string();
        assert_eq!(wrong, "which is not \"pass\" or \"drop\"");
    }
}
