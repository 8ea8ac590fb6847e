// The splits of each forward operator that are considered: those that somebody asks for, or all.
//
// What the user wrote, and the default of the batch, is carried along edges and factors as in propagation
// (propagation.h), but past every conflict: at each factor stands every list of axes that reaches it. A candidate of an
// operator gives each of its factors one of these lists, a part of one, or nothing, so that no axis is used twice and
// sizes divide.
//
// Where all are considered, every axis beside those of the batch may split every factor that the user has not fixed,
// and the batch behind its own; of several such axes one, or all in the order of the mesh. Then a factor that a rule
// calls whole may be split, too, where an alternative may stand for the operator (alternative_prices.h). The batch's
// axes split other factors, or nothing, where the caller says so: an operator on weights alone has no batch, and one
// with few rows may have more of something else.
#pragma once

#include <set>
#include <vector>

#include "planner/derive/shardings.h"
#include "planner/request.h"

namespace weft {

// A list that a factor cannot have.
struct RefusedSplit {
  int op = 0;
  int factor = 0;
  AxisList axes;
  bool isAsked = true;  // by the user's words; else only considered, as all are
};

struct Candidates {
  // Of each operator: the lists asked for of each factor. Only of forward operators.
  std::vector<std::vector<std::set<AxisList>>> asked;
  // Of each operator; the first is what it has. Open factors count as not split.
  std::vector<std::vector<FactorAxes>> of;
  // What does not divide, though the operator's rule allows it; of what nobody asks for, what nearly does.
  std::vector<RefusedSplit> refused;
  // Does some operator not have what is asked of it, or cannot have it; or are all considered?
  bool conflict = false;
};

Candidates candidatesOf(const SettledGraph& graph, const Shardings& shardings);
// What is considered where nobody says otherwise.
struct Considered {
  Fill fill = Fill::kDataParallel;  // over what the batch is split
  bool batchAxes = false;           // may its axes split other factors, or none?
};
Candidates allCandidatesOf(const SettledGraph& graph, const Shardings& shardings, const Considered& considered);

}  // namespace weft
