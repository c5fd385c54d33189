//! Salt's terminal colours.

/// The escape sequences in use; all empty without colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named after what they are")]
pub struct Palette {
    pub red: &'static str,
    pub green: &'static str,
    pub blue: &'static str,
    pub magenta: &'static str,
    pub cyan: &'static str,
    pub light_red: &'static str,
    pub light_green: &'static str,
    pub light_yellow: &'static str,
    pub light_blue: &'static str,
    pub light_magenta: &'static str,
    pub dark_gray: &'static str,
    pub light_gray: &'static str,
    pub white: &'static str,
    pub end: &'static str,
}

impl Palette {
    /// Salt's colours, or none.
    pub fn new(color: bool) -> Self {
        let pick = |code: &'static str| if color { code } else { "" };
        Self {
            red: pick("\x1b[0;31m"),
            green: pick("\x1b[0;32m"),
            blue: pick("\x1b[0;34m"),
            magenta: pick("\x1b[0;35m"),
            cyan: pick("\x1b[0;36m"),
            light_red: pick("\x1b[0;1;31m"),
            light_green: pick("\x1b[0;1;32m"),
            light_yellow: pick("\x1b[0;1;33m"),
            light_blue: pick("\x1b[0;1;34m"),
            light_magenta: pick("\x1b[0;1;35m"),
            dark_gray: pick("\x1b[0;1;30m"),
            light_gray: pick("\x1b[0;37m"),
            white: pick("\x1b[0;1;37m"),
            end: pick("\x1b[0;0m"),
        }
    }
}
