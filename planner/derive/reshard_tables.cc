#include "planner/derive/reshard_tables.h"

#include <algorithm>

#include "planner/derive/operator_time.h"
#include "planner/machine/times.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

Machine withoutLatency(Machine machine) {
  machine.linkLatency = 0;
  machine.networkLatency = 0;
  machine.launchLatency = 0;
  return machine;
}

// Does every dimension of `to` begin with what it has in `from`, and is nothing reduced?
bool onlySlices(const Layout& from, const Layout& to) {
  bool only = from.partial() == to.partial();
  for (size_t d = 0; only && d < from.dimensions(); ++d) {
    const AxisList& before = from.dim(d);
    const AxisList& after = to.dim(d);
    only = before.size() <= after.size() && std::equal(before.begin(), before.end(), after.begin());
  }
  return only;
}

}  // namespace

ReshardTables::ReshardTables(const SettledGraph& graph, const SubmeshMachines& machines, bool pricesSlices,
                             ReshardMemo& memo, AssignmentProblem& problem)
    : graph_(graph),
      machines_(machines),
      pricesSlices_(pricesSlices),
      problem_(problem),
      prices_(graph, machines.all(), memo),
      bucketed_(graph, withoutLatency(machines.all()), memo) {}

ReshardTables::Form ReshardTables::formOf(const ResharedValue& value) const {
  const GraphView& view = graph_.view;
  const bool isArgument = !view.producerOf(value.value);
  const bool isParameter = isArgument && view.graph().arguments[value.value].kind == ArgumentKind::kParameter;
  const int64_t level = isParameter ? graph_.zeroLevelOf(value.value) : 0;
  Form form = {.of = value};
  const bool isScalar = view.typeOf(value.value).shape.empty();
  form.bucketed = (isScalar && value.way != ReshardWay::kToEnd) || (isBack(form) ? isArgument : level >= 3);
  form.times = value.layers * value.calls;
  return form;
}

absl::Status ReshardTables::add(const ResharedValue& value, const ReshardEnd& source,
                                const std::vector<ReshardEnd>& readers) {
  const auto made = std::make_shared<const std::vector<Layout>>(layoutsOf(source, value.way));
  std::vector<Layout> forms;  // in which it is read, each made once
  for (const ReshardEnd& reader : readers) {
    for (const Layout& layout : layoutsOf(reader, value.way)) {
      if (std::find(forms.begin(), forms.end(), layout) == forms.end()) {
        forms.push_back(layout);
      }
    }
  }
  for (const Layout& layout : forms) {
    Form form = formOf(value);
    form.source = source.op;
    form.form = layout;
    form.made = made;
    form.isExact.assign(made->size(), false);
    form.prices.assign(made->size(), nullptr);
    std::vector<Picoseconds> costs;  // of making it, for each candidate of the source
    for (size_t each = 0; each < made->size(); ++each) {
      WEFT_ASSIGN_OR_RETURN(costs.emplace_back(), leastOf(form, each));
    }
    const bool isFree = std::all_of(form.isExact.begin(), form.isExact.end(), [](bool exact) { return exact; });
    if (!isFree || std::any_of(costs.begin(), costs.end(), [](Picoseconds cost) { return cost > 0; })) {
      addForm(std::move(form), costs, readers);
    }
  }
  return absl::OkStatus();
}

std::vector<std::pair<const ReshardMemo::Price*, int64_t>> ReshardTables::reshards() const {
  std::vector<std::pair<const ReshardMemo::Price*, int64_t>> all;
  for (const Form& form : forms_) {
    for (const ReshardMemo::Price* price : form.prices) {
      all.emplace_back(price, form.times);
    }
  }
  return all;
}

ReshardTables::Reshard ReshardTables::reshardOf(const Form& form, size_t made) {
  const Layout& other = (*form.made)[made];
  return isBack(form) ? Reshard{form.form, other} : Reshard{other, form.form};
}

// What only slices takes nothing, or a copy, and that is exact.
absl::StatusOr<Picoseconds> ReshardTables::leastOf(Form& form, size_t made) {
  const auto [from, to] = reshardOf(form, made);
  const ResharedValue& of = form.of;
  form.isExact[made] = onlySlices(from, to);
  if (form.isExact[made]) {
    const bool isCopied = pricesSlices_ && !(from == to);
    return isCopied ? of.layers * copyTime(machines_.of(of.mesh), 2 * localBytes(graph_, of.value, to)) : 0;
  }
  WEFT_ASSIGN_OR_RETURN(form.prices[made], pricesOf(form).atLeast(of.value, of.mesh, from, to));
  return form.times * *form.prices[made]->least;
}

absl::Status ReshardTables::price(const std::vector<int>& values) {
  for (const Form& form : forms_) {
    const int reader = values[form.reader];
    const int made = form.source ? values[*form.source] : form.made->size() > 1 ? reader : 0;
    if (!form.reads[reader] || form.isExact[made]) {
      continue;
    }
    const auto [from, to] = reshardOf(form, made);
    WEFT_RETURN_IF_ERROR(pricesOf(form).of(form.of.value, form.of.mesh, from, to).status());
    const ReshardMemo::Price* price = form.prices[made];
    for (const auto& [equal, madeThere] : countsIn_[price]) {
      forms_[equal].isExact[madeThere] = true;
      setCost(forms_[equal], madeThere, forms_[equal].times * *price->time);
    }
  }
  return absl::OkStatus();
}

void ReshardTables::setCost(const Form& form, int made, Picoseconds cost) {
  std::vector<Picoseconds>& costs = problem_.tables[form.table].costs;
  const auto values = static_cast<int>(form.reads.size());
  const bool isPair = form.source.has_value();
  for (int value = 0; value < values; ++value) {
    if (form.reads[value] && (isPair || form.made->size() == 1 || value == made)) {
      costs[isPair ? made * values + value : value] = cost;
    }
  }
}

// A form is made if some reader reads it: of one reader a table says so, of several a variable, kMade or kNotMade.
void ReshardTables::addForm(Form form, const std::vector<Picoseconds>& costs, const std::vector<ReshardEnd>& readers) {
  if (readers.size() == 1) {
    form.reader = *readers.front().op;
    for (const Layout& layout : layoutsOf(readers.front(), form.of.way)) {
      form.reads.push_back(layout == form.form);
    }
    addTable(std::move(form), costs);
    return;
  }
  const int isMade = static_cast<int>(problem_.values.size());
  problem_.values.push_back(2);
  for (const ReshardEnd& reader : readers) {
    CostTable table{{*reader.op, isMade}, {}};
    bool reads = false;
    for (const Layout& layout : layoutsOf(reader, form.of.way)) {
      table.costs.push_back(0);
      table.costs.push_back(layout == form.form ? kImpossible : 0);
      reads = reads || layout == form.form;
    }
    if (reads) {
      problem_.tables.push_back(std::move(table));
    }
  }
  form.reader = isMade;
  form.reads = {true, false};
  addTable(std::move(form), costs);
}

// Of one reader each candidate reads one form, so those of one value are one table.
bool ReshardTables::areOfOneTable(const Form& a, const Form& b) {
  return a.of.value == b.of.value && a.of.mesh == b.of.mesh && a.of.way == b.of.way && a.source == b.source &&
         a.reader == b.reader;
}

// The costs of the source's candidates where the reader reads.
void ReshardTables::addTable(Form form, const std::vector<Picoseconds>& costs) {
  if (form.source == form.reader) {
    form.source.reset();
  }
  const bool isNew = forms_.empty() || !areOfOneTable(forms_.back(), form);
  form.table = static_cast<int>(problem_.tables.size()) - (isNew ? 0 : 1);
  const auto values = static_cast<int64_t>(form.reads.size());
  const int64_t sources = form.source ? static_cast<int64_t>(costs.size()) : 1;
  if (isNew) {
    CostTable& table = problem_.tables.emplace_back();
    if (form.source) {
      table.variables.push_back(*form.source);
    }
    table.variables.push_back(form.reader);
    table.costs.assign(sources * values, 0);
  }
  std::vector<Picoseconds>& entries = problem_.tables[form.table].costs;
  for (int64_t made = 0; made < sources; ++made) {
    for (int64_t value = 0; value < values; ++value) {
      if (form.reads[value]) {
        entries[made * values + value] = costs[form.source ? made : costs.size() > 1 ? value : 0];
      }
    }
  }
  for (size_t made = 0; made < form.prices.size(); ++made) {
    if (form.prices[made] != nullptr) {
      countsIn_[form.prices[made]].emplace_back(forms_.size(), static_cast<int>(made));
    }
  }
  forms_.push_back(std::move(form));
}

}  // namespace weft
