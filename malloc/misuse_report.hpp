// What libheapwright does with a message about a mistake of the program, beside writing it to
// stderr: the calls that led to it, syslog, and a copy for debuggers.
#pragma once

namespace heapwright::process {

/// From now on. `goes_on`: the process does not end where that does no harm. Once, before there are
/// threads.
void begin_misuse_reports(bool goes_on, bool to_syslog) noexcept;

/// The rest of a message that is written to stderr by others.
void keep_misuse_report(const char* line) noexcept;

}  // namespace heapwright::process
