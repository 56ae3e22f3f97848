// Static tracepoints (USDT): places in the code that a tool outside the process can listen to. gdb
// sets a breakpoint there; perf, bpftrace and eBPF profilers a uprobe. The tool reads arguments.
//
// The problem: a tracepoint must cost nothing while no tool listens, and needs no header or library
// of a tracer. So it is one nop. A note in the file, which is not loaded into memory, tells tools
// where the nop is.
//
//   section .note.stapsdt, type 3, name "stapsdt"
//     8 bytes   address of the nop
//     8 bytes   address of section .stapsdt.base at link time: prelink may have moved it
//     8 bytes   address of the semaphore, 0: none
//     strings   provider, name and arguments, each with a zero at its end
//   an argument is SIZE@OPERAND, as the assembler writes an operand: 8@%rdi, 8@x0, 8@a0
//
// A semaphore is a counter of two bytes in section .probes. A tool increments it while it listens.
//
// The arguments are in the registers of a function's first arguments. By its design, the first
// version of OpenTelemetry's profiler reads these registers, and not what the note says.
//
// Format: https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
#pragma once

#if defined __x86_64__
#define HEAPWRIGHT_ARGUMENT_1 "rdi"
#define HEAPWRIGHT_ARGUMENT_2 "rsi"
#define HEAPWRIGHT_ARGUMENT_3 "rdx"
#elif defined __aarch64__
#define HEAPWRIGHT_ARGUMENT_1 "x0"
#define HEAPWRIGHT_ARGUMENT_2 "x1"
#define HEAPWRIGHT_ARGUMENT_3 "x2"
#elif defined __riscv
#define HEAPWRIGHT_ARGUMENT_1 "a0"
#define HEAPWRIGHT_ARGUMENT_2 "a1"
#define HEAPWRIGHT_ARGUMENT_3 "a2"
#endif

/// The text of an asm statement; all arguments are string literals. `semaphore` is its symbol, or
/// 0; `arguments` are as in the note, such as "8@%0 8@%1". The function around it must not be
/// inlined: each copy would be a tracepoint of its own.
#define HEAPWRIGHT_TRACEPOINT(provider, name, semaphore, arguments)                                                \
  ".Ltracepoint_%=: nop\n"                                                                                         \
  ".pushsection .note.stapsdt, \"\", \"note\"\n"                                                                   \
  ".balign 4\n"                                                                                                    \
  ".4byte 8, .Ltracepoint_end_%= - .Ltracepoint_begin_%=, 3\n"                                                     \
  ".asciz \"stapsdt\"\n"                                                                                           \
  ".Ltracepoint_begin_%=: .8byte .Ltracepoint_%=, _.stapsdt.base, " semaphore "\n.asciz \"" provider "\", \"" name \
  "\", \"" arguments                                                                                               \
  "\"\n"                                                                                                           \
  ".Ltracepoint_end_%=: .balign 4\n"                                                                               \
  ".popsection\n"                                                                                                  \
  ".ifndef _.stapsdt.base\n"                                                                                       \
  ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"                                      \
  ".weak _.stapsdt.base\n"                                                                                         \
  ".hidden _.stapsdt.base\n"                                                                                       \
  "_.stapsdt.base: .zero 1\n"                                                                                      \
  ".size _.stapsdt.base, 1\n"                                                                                      \
  ".popsection\n"                                                                                                  \
  ".endif"
