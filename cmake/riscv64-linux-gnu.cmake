# Cross-building for 64-bit RISC-V with Debian's g++-riscv64-linux-gnu; programs run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_C_COMPILER riscv64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER riscv64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-riscv64;-L;/usr/riscv64-linux-gnu")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# GCC 12 calls libatomic for atomic operations on less than four bytes.
set(CMAKE_C_STANDARD_LIBRARIES_INIT -l:libatomic.a)
set(CMAKE_CXX_STANDARD_LIBRARIES_INIT -l:libatomic.a)
