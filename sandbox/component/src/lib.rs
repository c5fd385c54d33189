//! What a module says about itself: functions, types, documentation and imports, read from the component.
