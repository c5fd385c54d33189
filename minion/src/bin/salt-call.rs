//! The program `salt-call`.

fn main() {
    std::process::exit(brine_minion::call::main(std::env::args_os()));
}
