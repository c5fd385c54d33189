#!/bin/sh
# check-executor.sh BINDIR: the shipped executor links wasmtime's runtime and no compiler. (The runtime shares some crates of data
# structures with Cranelift: cranelift-entity, cranelift-bitset.)
set -eu
exe=$1/brine-executor
if cargo tree --locked -p brine-executor -e normal,build --prefix none | grep -E '^(cranelift-(codegen|frontend|native)|wasmtime-internal-(cranelift|winch)|winch-codegen) '; then
  echo "check-executor: the executor's dependencies hold a compiler" >&2; exit 1
fi
if grep -q 'cranelift_codegen' "$exe"; then
  echo "check-executor: $exe holds a compiler: build it by a cargo call of its own" >&2; exit 1
fi
echo "check-executor: $exe holds no compiler, $(wc -c < "$exe") bytes"
