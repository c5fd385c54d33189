//! What only the commands read.

use super::*;

settings! { AREA = "Commands (salt, salt-call, salt-key, salt-cp)";
    /// Outputter of results, as `--out`.
    OUTPUT: String = text("output", both("null"));
    /// Columns by which nested output is indented, or `pretty`.
    OUTPUT_INDENT: Value = any("output_indent", both(NONE));
    /// Use colours on a terminal.
    COLOR: bool = truth("color", both("true"));
    /// Remove colours from the texts that minions return.
    STRIP_COLORS: bool = truth("strip_colors", both("true"));
    /// How much of each state is shown: `full`, `terse`, `mixed`, `changes` or `filter`, each also with `_id`.
    STATE_OUTPUT: String = text("state_output", each("full", NONE));
    /// Show states that changed nothing.
    STATE_VERBOSE: bool = truth("state_verbose", both("true"));
    /// Show only the differences that states made.
    STATE_OUTPUT_DIFF: bool = truth("state_output_diff", both("false"));
    /// Show when each state began and how long it took.
    STATE_OUTPUT_PROFILE: bool = truth("state_output_profile", both("true"));
    /// Show the share of states that succeeded.
    STATE_OUTPUT_PCT: bool = truth("state_output_pct", both("false"));
    /// Show states as a table.
    STATE_TABULAR: Value = any("state_tabular", both(NONE));
    /// Show states of one id and one result in one block.
    STATE_COMPRESS_IDS: bool = truth("state_compress_ids", both("false"));
    /// With `state_output: filter`: results of states that are left out.
    STATE_OUTPUT_EXCLUDE: Value = any("state_output_exclude", both(NONE));
    /// With `state_output: filter`: results of states that are shown in one line.
    STATE_OUTPUT_TERSE: Value = any("state_output_terse", both(NONE));
    /// File in which `salt -T` keeps its token; `~/` is the user's home.
    TOKEN_FILE: String = text("token_file", master(NONE)).private();
    /// Size of the pieces in which `salt-cp --chunked` sends a file.
    SALT_CP_CHUNK_SIZE: u64 = integer("salt_cp_chunk_size", master("98304"), "bytes", POSITIVE);
    /// Keep the cached data of minions whose key `salt-key` deletes.
    PRESERVE_MINION_CACHE: bool = truth("preserve_minion_cache", master("false"));
}
