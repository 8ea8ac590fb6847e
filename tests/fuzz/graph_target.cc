// Program graphs: what a graph says it says again when it is printed, and rewrites keep it whole.
#include "planner/graph/graph_json.h"
#include "planner/graph/graph_view.h"
#include "planner/graph/rewrites.h"
#include "planner/graph/sums.h"
#include "tests/fuzz/target.h"

namespace weft::fuzz {
namespace {

void requireWhole(const ProgramGraph& graph, const std::string& what) {
  const absl::StatusOr<ProgramGraph> again = parseProgramGraph(printProgramGraph(graph));
  requireOk(again.status(), what);
  require(*again == graph, what + " is another one when it is read again");
}

// Each sum the other way round, each term a group of its own.
void regroupSums(ProgramGraph& graph) {
  std::vector<Rewrite> rewrites;
  const GraphView view(graph);
  for (int op = 0; op < view.operators(); ++op) {
    const Sum sum = sumEndingIn(view, op);
    Rewrite rewrite{Rewrite::kRegroup, view.op(op).id};
    for (size_t term = sum.terms.size(); term > 0; --term) {
      rewrite.groups.push_back({static_cast<unsigned>(term - 1)});
    }
    if (!sum.operators.empty()) {
      rewrites.push_back(std::move(rewrite));
    }
  }
  for (const Rewrite& rewrite : rewrites) {
    requireOk(regroupSum(graph, rewrite), "the terms of a sum");
    require(GraphView(graph).operators() == static_cast<int>(graph.operators.size()),
            "a regrouped graph lacks operators");
  }
}

Outcome run(const std::string& bytes) {
  const absl::StatusOr<ProgramGraph> read = parseProgramGraph(bytes);
  if (!read.ok()) {
    return Outcome::kRefused;
  }
  requireWhole(*read, "a graph that was read");
  require(GraphView(*read).operators() == static_cast<int>(read->operators.size()), "a view lacks operators");
  ProgramGraph graph = *read;
  for (const GraphOperator& op : read->operators) {
    if (!op.alternatives.empty()) {
      requireOk(takeAlternative(graph, op.id), "an alternative that is there");
    } else if (!op.operands.empty()) {
      // May be refused: it depends on a parameter.
      (void)hoistToPrologue(graph, {Rewrite::kPrologue, op.id, 0});
    }
  }
  eraseUnused(graph);
  regroupSums(graph);
  requireWhole(graph, "a rewritten graph");
  return Outcome::kAccepted;
}

}  // namespace

Target graphTarget() {
  return {"graph", run, nullptr,
          wordsOf("{|}|[|]|:|,|\"|null|true|\"%0\"|\"%1\"|\"0#0\"|\"3#0\"|\"f32[8,4]\"|\"i32[]\"|\"bf16[2]\"|\"id\":|"
                  "\"operands\":|\"results\":|\"alternatives\":|\"body\":|\"forward\":|\"prologue_of\":|\"updates\":|"
                  "\"phase\":\"backward\"|\"phase\":\"update\"|\"line\":[\"a.cc\",1,2]|\"next_id\":|-1|99999|"
                  "\"strategy\":{\"in\":[[2,1],[1]]}|\"linear\":[[0],[1]]|\"attributes\":{|{\"real\":\"nan\"}|"
                  "{\"reals\":[0.5,\"-inf\"]}|\"pad_fill\":[null]|\"reduce\":[\"max\"]|\"view\":\"shape\"|"
                  "\"flops_per_point\":2.0|\"is_sum\":true|\"passes_sums\":true")};
}

}  // namespace weft::fuzz
