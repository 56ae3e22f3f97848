# Shared by the scripts here: what they say of themselves, where things are, one line per step with its log, and packages.
this_script=$(realpath "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$root/build/logs
mkdir -p "$logs"
jobs=$(nproc)

# The comment at the top of the script.
usage() { sed -n '2,${/^#/!q;s/^# \{0,1\}//p}' "$this_script"; }

# refuse ARGUMENT: of one that the script does not know, or of none where it needs one.
refuse() {
  [ -z "$1" ] || echo "$(basename "$this_script"): unknown argument: $1" >&2
  usage >&2
  exit 2
}

case ${1:-} in -h | --help) usage; exit ;; esac

# step NAME COMMAND...: says what is done and how long it took; the output goes to build/logs/NAME.log.
step() {
  local name=$1 begin=$SECONDS
  shift
  printf '  %-34s' "$name"
  if "$@" >"$logs/$name.log" 2>&1; then
    printf 'ok    %4d s\n' $((SECONDS - begin))
  else
    printf 'FAILED %3d s\n' $((SECONDS - begin))
    tail -n "${TAIL:-40}" "$logs/$name.log" >&2
    echo "the whole log: $logs/$name.log" >&2
    return 1
  fi
}

build_packages="g++ cmake ninja-build pkg-config libcli11-dev libfmt-dev nlohmann-json3-dev libelf-dev libdw-dev liblzma-dev libbz2-dev libprotozero-dev libcurl4-openssl-dev libiberty-dev zlib1g-dev libzstd-dev libxxhash-dev robin-map-dev libgtest-dev"
# The live page is bundled by Node.js, which some have from elsewhere than from Debian, npm included.
command -v npm >/dev/null || build_packages="$build_packages nodejs npm"
peer_packages="libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4 libtbbmalloc2"
program_packages="python3 libpython3.11-testsuite redis-server redis-tools sqlite3 git nodejs perl php-cli ruby default-jdk-headless postgresql nginx-light curl"
test_packages="googletest openssl python3-venv meson doxygen chromium prometheus musl-tools valgrind procps util-linux gdb lldb python3-lldb-14 libcap2-bin libc6-dbg zsh fish groff-base $peer_packages $program_packages"
# Go has a reader of profiles; some have it from elsewhere.
command -v go >/dev/null || test_packages="$test_packages golang-go"
checking_packages="clang-16 clang-format-16 clang-tidy-16 libclang-rt-16-dev"
windows_packages="g++-mingw-w64-x86-64-posix wine64"
other_system_packages="g++-aarch64-linux-gnu g++-riscv64-linux-gnu qemu-user $windows_packages"
all_test_packages="$test_packages $checking_packages $other_system_packages"

# need PACKAGE...: installs what is missing, on Debian; elsewhere says what is needed and goes on.
need() {
  local missing=() package
  if ! command -v apt-get >/dev/null; then
    echo "  not a Debian system: make sure that these, or what they are called here, are installed: $*"
    return 0
  fi
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local sudo=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "these packages are missing, and neither root nor sudo is here: ${missing[*]}" >&2; return 1; }
    sudo=(sudo)
  fi
  step packages install_packages "${sudo[@]}" "${missing[@]}"
}

install_packages() {
  local sudo=()
  [ "$1" != sudo ] || { sudo=(sudo); shift; }
  "${sudo[@]}" apt-get update -q
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

# build PRESET [CMAKE ARGUMENT...]: configures once and builds.
build() {
  local preset=$1
  shift
  cmake --preset "$preset" -S "$root" -B "$root/build/$preset" "$@" && cmake --build "$root/build/$preset" -j "$jobs"
}
