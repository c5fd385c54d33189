#!/bin/sh
# check-executor.sh BINDIR: the shipped executor links wasmtime's runtime and no compiler.
set -eu
exe=$1/brine-executor
if cargo tree --locked -p brine-executor -e normal,build --prefix none | grep -E '^(cranelift|wasmtime-internal-cranelift|winch)' ; then
  echo "check-executor: the executor's dependencies hold a compiler" >&2; exit 1
fi
if grep -q 'cranelift_codegen' "$exe"; then
  echo "check-executor: $exe holds a compiler: build it by a cargo call of its own" >&2; exit 1
fi
echo "check-executor: $exe holds no compiler, $(wc -c < "$exe") bytes"
