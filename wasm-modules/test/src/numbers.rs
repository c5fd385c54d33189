//! Computations.

/// The `num`-th Fibonacci number, computed slowly on purpose: one addition after the other.
pub(crate) fn fib(num: u32) -> Result<u64, String> {
    let (mut current, mut next) = (0_u64, 1_u64);
    for _ in 0..num {
        (current, next) = (next, current.saturating_add(next));
        if current == u64::MAX {
            return Err(format!("the Fibonacci number {num} does not fit in 64 bits; the 93rd is the last that does"));
        }
    }
    Ok(current)
}

/// The Collatz sequence from `start` down to, not including, 1.
pub(crate) fn collatz(start: u64) -> Result<Vec<u64>, String> {
    if start == 0 {
        return Err("the sequence of 0 never ends".into());
    }
    let mut steps = Vec::new();
    let mut at = start;
    while at != 1 {
        steps.push(at);
        at = match at % 2 {
            0 => at / 2,
            _ => at
                .checked_mul(3)
                .and_then(|at| at.checked_add(1))
                .ok_or_else(|| format!("the sequence of {start} leaves 64 bits"))?,
        };
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fibonacci_numbers_to_the_last_that_fits() {
        for (num, expected) in [(0, 0), (1, 1), (2, 1), (3, 2), (10, 55), (93, 12_200_160_415_121_876_738)] {
            assert_eq!(fib(num), Ok(expected), "{num}");
        }
        assert!(fib(94).is_err());
        assert!(fib(u32::MAX).is_err());
    }

    #[test]
    fn collatz_sequences() {
        assert_eq!(collatz(1), Ok(vec![]));
        assert_eq!(collatz(3), Ok(vec![3, 10, 5, 16, 8, 4, 2]));
        assert!(collatz(0).is_err());
        assert!(collatz(u64::MAX).is_err());
    }
}
