// What main registers.
#pragma once

namespace bench {

void add_containers();  ///< S0
void add_arenas();      ///< S1
void add_slabs();       ///< S2
void add_trees();       ///< S3
void add_loops();       ///< S1, S3: the fast paths alone

}  // namespace bench
