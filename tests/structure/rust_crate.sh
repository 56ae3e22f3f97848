#!/usr/bin/env bash
# Makes the crate, tests what is in it, and builds a program that has it as a dependency.
#   usage: rust_crate.sh PROJECT
set -euo pipefail
cd "$1"
script/package crate
crates=(build/packages/heapwright-*.crate)
[ ${#crates[@]} = 1 ] || { echo "not one crate: ${crates[*]}"; exit 1; }
command=$PWD/build/release/bin/heapwright

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
tar xzf "${crates[0]}" -C "$place" --one-top-level=heapwright --strip-components=1
export CARGO_TARGET_DIR=$place/target
cd "$place/heapwright"
cargo test
cargo test --features allocator-api2,hardened

mkdir -p "$place/program/src"
cd "$place/program"
cat >Cargo.toml <<'END'
[package]
name = "program"
version = "0.1.0"
edition = "2021"
[dependencies]
heapwright = { path = "../heapwright" }
END
cat >src/main.rs <<'END'
#[global_allocator]
static ALLOCATOR: heapwright::Malloc = heapwright::Malloc;

fn main() {
    let kept: Vec<Vec<u8>> = (0..1000).map(|n| vec![1; n]).collect();
    println!("ready, {} vectors", kept.len());
    std::io::stdin().read_line(&mut String::new()).unwrap();
}
END
cargo build --release
mkfifo end
"$CARGO_TARGET_DIR/release/program" <end >said &
exec 3>end
for _ in $(seq 100); do
  ! grep -q "ready, 1000 vectors" said || break
  sleep 0.1
done
"$command" info $! | tee info
grep -q "loaded" info
exec 3>&-
wait $!
