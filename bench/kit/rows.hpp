// What main registers.
#pragma once

#include <cstddef>
#include <string_view>

namespace bench {

void add_containers();  ///< S0
void add_arenas();      ///< S1
void add_slabs();       ///< S2

/// S2 for the first time in this process: prints nanoseconds and page faults. False: there is no
/// such memory or row.
bool print_first_round(std::string_view memory, int n, std::size_t size);

void add_trees();    ///< S3
void add_loops();    ///< S1, S3: the fast paths alone
void add_threads();  ///< S0: several threads

}  // namespace bench
