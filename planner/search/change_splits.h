// The split of one operator at a time: of a plan that was found each operator in turn is split otherwise, all others
// are decided by price again, and what is predicted to be better stays.
//
// Splits are decided by sums of prices (settle_conflicts.h). A prediction knows more: the longest stage counts, not all
// of them, so that a reshard between two stages belongs into the shorter one; what is reduced over the same axes is
// reduced together; and under a memory limit there are plans that no price of memory leads to. Operators next to a
// border of stages come first, and what the step returns.
//
// Only of tiny programs (kOperatorsOfTiny), and fewer times the more operators there are.
#pragma once

#include "planner/search/choose_open.h"

namespace weft {

// `plan`: found for `request`, whose words of operators stay. The operators that were split otherwise are in the graph
// of the answer as words of the search (UserStrategy::isSearched).
ClosedRequest changeSplits(ClosedRequest plan, const CompileOptions& request, const Predict& predict);

}  // namespace weft
