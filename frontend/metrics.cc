#include "weft/metrics.h"

#include "absl/strings/str_cat.h"
#include "frontend/call.h"
#include "frontend/graph_impl.h"
#include "ir/program/program.h"
#include "weft/ops.h"

namespace weft {
namespace {

// The input that says which rows are real, with a dimension of 1 for each other of `values`; not valid after an error.
Tensor realRows(Call& call, const std::string& name, const Tensor& values, SourceLine at) {
  GraphImpl* const graph = call.graph();
  if (values.shape().empty()) {
    return call.fail(absl::StrCat("'", name, "' is a scalar, in which rows cannot be told apart; give the values of ",
                                  "the rows, such as losses before their mean"));
  }
  Tensor rows = graph->findArgument(kMetricRows);
  if (!rows.valid()) {
    mlir::NamedAttrList attrs;
    attrs.set(kKindAttr, graph->builder.getStringAttr("input"));
    rows = graph->addArgument(at, kMetricRows, {values.dim(0)}, Type::kBool, attrs);
  } else if (rows.dim(0) != values.dim(0)) {
    return call.fail(absl::StrCat("'", name, "' is ", describe(values), ", of ", values.dim(0),
                                  " rows, but the graph's metrics before have ", rows.dim(0),
                                  "; dimension 0 is the batch, in all of them"));
  }
  Shape shape(values.shape().size(), 1);
  shape[0] = values.dim(0);
  return reshape(rows, shape, at);
}

void put(const std::string& name, const Tensor& total, const Tensor& weight, SourceLine at) {
  total.graph()->addOutput(at, name + ".sum", total);
  total.graph()->addOutput(at, name + ".weight", weight);
}

}  // namespace

void metric(const std::string& name, const Tensor& values, SourceLine at) {
  Call call(at, "metric", {{"values", values}});
  if (!call.ok()) {
    return;
  }
  const Tensor real = realRows(call, name, values, at);
  if (!real.valid()) {
    return;
  }
  double elements = 1;  // of a row
  for (size_t d = 1; d < values.shape().size(); ++d) {
    elements *= static_cast<double>(values.dim(static_cast<int64_t>(d)));
  }
  const Tensor total = sum(select(real, cast(values, kF64, at), 0, at), {}, false, at);
  put(name, total, mul(sum(cast(real, kF64, at), {}, false, at), elements, at), at);
}

void metric(const std::string& name, const Tensor& values, const Tensor& weights, SourceLine at) {
  Call call(at, "metric", {{"values", values}});
  if (!call.ok() || !Call(at, "metric", {{"weights", weights}}).ok()) {
    return;
  }
  if (weights.shape() != values.shape()) {
    call.fail(
        absl::StrCat("values are ", describe(values), ", weights ", describe(weights), "; give each value its weight"));
    return;
  }
  const Tensor real = realRows(call, name, values, at);
  if (!real.valid()) {
    return;
  }
  const bool chooses = weights.type() == kBool;
  const Tensor counts = chooses ? logicalAnd(weights, real, at) : real;
  const Tensor weight = cast(weights, kF64, at);
  const Tensor weighed = chooses ? cast(values, kF64, at) : mul(cast(values, kF64, at), weight, at);
  put(name, sum(select(counts, weighed, 0, at), {}, false, at), sum(select(counts, weight, 0, at), {}, false, at), at);
}

}  // namespace weft
