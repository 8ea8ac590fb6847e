#include "tests/equivalence/random_plans.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/schedule/generate.h"
#include "tests/equivalence/operator_strategies.h"

namespace weft::testing {
namespace {

std::string meshOf(const RandomPlan& plan) {
  return absl::StrCat("dp=", plan.dp, ",tp=", plan.tp);
}

bool isForward(const GraphOperator& op) {
  return op.phase == Phase::kForward && !op.prologueOf;
}

// "h0.attention.q" -> "h0".
std::string layerName(const std::string& parameter) {
  return parameter.substr(0, parameter.find('.'));
}

}  // namespace

RandomPlans::RandomPlans(const ProgramGraph& graph, const PlanDomain& domain, uint64_t seed)
    : graph_(graph), domain_(domain), generator_(seed) {
  std::set<std::string> seen, kinds;
  for (const GraphOperator& op : graph_.operators) {
    for (const GraphValue& operand : op.operands) {
      const bool isNew = isForward(op) && operand.isArgument() &&
                         graph_.arguments[operand.index].kind == ArgumentKind::kParameter &&
                         seen.insert(layerName(graph_.arguments[operand.index].name)).second;
      layers_ += isNew && seen.size() > 1 ? 1 : 0;
    }
    layerOf_.push_back(isForward(op) ? layers_ - 1 : 0);
    if (isForward(op)) {
      kinds.insert(op.facts.kind);
    }
  }
  kinds_.assign(kinds.begin(), kinds.end());
}

int64_t RandomPlans::divisorOf(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor == 0) {
      divisors.push_back(divisor);
    }
  }
  return oneOf(divisors);
}

RandomPlan RandomPlans::draw() {
  RandomPlan plan;
  drawGrid(plan);
  drawZero(plan);
  drawRecompute(plan);
  drawSplits(plan, oneOf<int>({0, 3, 10, 50, 100}));
  return plan;
}

// Submeshes, stages on them, the mesh of one; and what depends on them.
void RandomPlans::drawGrid(RandomPlan& plan) {
  do {
    plan.submeshes = divisorOf(domain_.devices);
    plan.virtualStages = plan.submeshes > 1 ? oneOf<int64_t>({1, 1, 2}) : 1;
  } while (plan.submeshes * plan.virtualStages > static_cast<int64_t>(layers_));
  const int64_t ranks = domain_.devices / plan.submeshes;
  plan.dp = divisorOf(ranks);
  plan.tp = ranks / plan.dp;
  std::set<size_t> first;
  while (static_cast<int64_t>(first.size()) + 1 < plan.submeshes * plan.virtualStages) {
    first.insert(1 + below(layers_ - 1));
  }
  plan.first.assign(first.begin(), first.end());
  plan.splits.clear();
  drawMicro(plan);
  drawSchedule(plan);
}

void RandomPlans::drawMicro(RandomPlan& plan) {
  plan.micro = domain_.rows % plan.dp == 0 ? divisorOf(domain_.rows / plan.dp) : 1;
}

void RandomPlans::drawSchedule(RandomPlan& plan) {
  plan.schedule = "auto";
  if (plan.submeshes > 1 && below(2) == 0) {
    plan.schedule = schedule::kindName(oneOf(schedule::allKinds()));
  }
}

void RandomPlans::drawZero(RandomPlan& plan) {
  plan.zero = static_cast<int>(below(4));
  plan.regather = plan.zero == 3 && below(2) == 0;
}

void RandomPlans::drawRecompute(RandomPlan& plan) {
  plan.recompute = oneOf<std::string>({"auto", "auto", "none", "full", ""});
  if (plan.recompute.empty()) {
    plan.recompute = below(2) == 0 ? oneOf(kinds_) : absl::StrCat(oneOf(kinds_), ",", oneOf(kinds_));
  }
}

void RandomPlans::drawSplits(RandomPlan& plan, int percent) {
  plan.splits.clear();
  plan.byPrice = below(2) == 0;
  const auto& strategies = strategiesOn(plan);
  for (size_t op = 0; op < graph_.operators.size(); ++op) {
    if (isForward(graph_.operators[op]) && !strategies[op].empty() && static_cast<int>(below(100)) < percent) {
      plan.splits[graph_.operators[op].id] = below(strategies[op].size());
    }
  }
}

void RandomPlans::splitOne(RandomPlan& plan) {
  const auto& strategies = strategiesOn(plan);
  const size_t op = below(graph_.operators.size());
  if (!isForward(graph_.operators[op]) || strategies[op].empty()) {
    return;
  }
  const int64_t id = graph_.operators[op].id;
  if (plan.splits.count(id) > 0 && below(3) == 0) {
    plan.splits.erase(id);
  } else {
    plan.splits[id] = below(strategies[op].size());
  }
}

RandomPlan RandomPlans::near(RandomPlan plan) {
  switch (below(12)) {
    case 0:
      drawGrid(plan);
      break;
    case 1:
      drawMicro(plan);
      break;
    case 2:
      drawSchedule(plan);
      break;
    case 3:
      drawZero(plan);
      break;
    case 4:
      drawRecompute(plan);
      break;
    case 5:
      plan.byPrice = !plan.byPrice;
      break;
    default:
      splitOne(plan);
      break;
  }
  return plan;
}

const std::vector<std::vector<UserStrategy>>& RandomPlans::strategiesOn(const RandomPlan& plan) {
  std::vector<std::vector<UserStrategy>>& all = strategies_[meshOf(plan)];
  if (all.empty()) {
    const GraphView view(graph_);
    const Mesh mesh = *Mesh::parse(meshOf(plan));
    for (int op = 0; op < view.operators(); ++op) {
      all.push_back(isForward(view.op(op)) ? strategiesOf(view, op, mesh) : std::vector<UserStrategy>());
    }
  }
  return all;
}

ProgramGraph RandomPlans::graphOf(const RandomPlan& plan, const ProgramGraph& program) {
  ProgramGraph graph = program;
  const auto& strategies = strategiesOn(plan);
  for (size_t op = 0; op < graph.operators.size(); ++op) {
    GraphOperator& mine = graph.operators[op];
    if (!plan.first.empty() && isForward(mine)) {
      mine.userStage = std::upper_bound(plan.first.begin(), plan.first.end(), layerOf_[op]) - plan.first.begin();
    }
    if (const auto split = plan.splits.find(mine.id); split != plan.splits.end()) {
      mine.strategy = strategies[op][split->second];
    }
  }
  return graph;
}

CompileOptions RandomPlans::optionsOf(const RandomPlan& plan, CompileOptions options) const {
  options.mode = plan.byPrice ? Mode::kLayouts : Mode::kSemi;
  options.devices = 1;
  options.mesh = meshOf(plan);
  options.micro = plan.micro;
  options.zero = plan.zero;
  options.regather = plan.regather;
  options.schedule = plan.submeshes > 1 ? plan.schedule : "auto";
  options.virtualStages = plan.submeshes > 1 ? plan.virtualStages : 0;
  options.recompute = plan.recompute;
  return options;
}

bool RandomPlans::split(RandomPlan& plan, int64_t id, const std::string& strategy) {
  const auto& strategies = strategiesOn(plan);
  for (size_t op = 0; op < graph_.operators.size(); ++op) {
    for (size_t i = 0; graph_.operators[op].id == id && i < strategies[op].size(); ++i) {
      if (printed(strategies[op][i]) == strategy) {
        plan.splits[id] = i;
        return true;
      }
    }
  }
  return false;
}

std::string RandomPlans::textOf(const RandomPlan& plan) {
  std::string text = absl::StrCat(plan.submeshes, " x ", meshOf(plan), ", virtual ", plan.virtualStages,
                                  ", first layers ", absl::StrJoin(plan.first, " "), ", micro ", plan.micro, ", zero ",
                                  plan.zero, plan.regather ? " regather" : "", ", schedule ", plan.schedule,
                                  ", recompute ", plan.recompute, plan.byPrice ? ", splits by price" : "");
  const auto& strategies = strategiesOn(plan);
  for (size_t op = 0; op < graph_.operators.size(); ++op) {
    const GraphOperator& mine = graph_.operators[op];
    if (const auto split = plan.splits.find(mine.id); split != plan.splits.end()) {
      absl::StrAppend(&text, "\n    ", mine.label(), "#", mine.id, " ", printed(strategies[op][split->second]));
    }
  }
  return text;
}

}  // namespace weft::testing
