//! Structs of settings.

/// Defines a struct of settings and its `from_config`, which reads and checks every field. Each field stands once, beside the setting that
/// it is read from.
#[macro_export]
macro_rules! options {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident from $config:ident {
            $($(#[$doc:meta])* $field_vis:vis $field:ident: $type:ty = $value:expr,)+
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$doc])* $field_vis $field: $type,)+
        }

        impl $name {
            /// Reads and checks the settings.
            ///
            /// # Errors
            /// When a setting has a value of a wrong type or form; the error names setting, file and what is expected.
            $vis fn from_config(
                $config: &$crate::config::Config,
            ) -> Result<Self, $crate::config::ConfigError> {
                Ok(Self { $($field: $value,)+ })
            }
        }
    };
}
