#include "tests/equivalence/random_text.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace weft::testing {
namespace {

// The size of dimension d counted from the right; 1 beyond the left end.
int64_t fromRight(const Dims& shape, size_t d) {
  return d < shape.size() ? shape[shape.size() - 1 - d] : 1;
}

}  // namespace

std::string listText(const Dims& dims) {
  return absl::StrCat("array<i64", dims.empty() ? "" : ": ", absl::StrJoin(dims, ", "), ">");
}

int64_t elementsOf(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

RandomText::RandomText(std::mt19937_64& random, int64_t ranks) : generator(random) {
  result.rowWise = pick(2) == 0;
  // A multiple of 11 is hardly ever the size of another dimension.
  result.batch = result.rowWise ? Dims{22, 33, 44, 66, 88}[pick(5)] : ranks * (1 + pick(2));
}

void RandomText::addInput() {
  Dims shape = {result.batch};
  for (int64_t i = 0, more = 1 + pick(2); i < more; ++i) {
    shape.push_back(size());
  }
  const std::string name = absl::StrCat("x", result.program.inputs.size());
  result.program.inputs.push_back({name, shape});
  values.push_back({name, shape, true});
}

size_t RandomText::parameter(const Dims& shape) {
  const std::string name = absl::StrCat("w", result.program.parameters.size());
  result.program.parameters.push_back({name, shape});
  values.push_back({name, shape, false});
  return values.size() - 1;
}

size_t RandomText::emit(const std::string& op, const std::vector<size_t>& operands, const std::string& attributes,
                        const std::vector<MadeValue>& results) {
  std::vector<std::string> names;
  std::vector<std::string> types;
  for (const size_t operand : operands) {
    ++values[operand].readers;
    names.push_back("%" + values[operand].name);
    types.push_back(typeText(values[operand].shape, values[operand].type));
  }
  std::vector<std::string> made;
  std::vector<std::string> madeTypes;
  const size_t first = values.size();
  for (const MadeValue& value : results) {
    const std::string name = absl::StrCat("v", next_++);
    made.push_back("%" + name);
    madeTypes.push_back(typeText(value.shape, value.type));
    if (value.isListed) {
      values.push_back({name, value.shape, value.batch, 0, value.type, value.type == "f64"});
    }
  }
  const bool isOne = made.size() == 1;
  absl::StrAppend(&result.program.body, "    ", absl::StrJoin(made, ", "), " = nn.", op, " ",
                  absl::StrJoin(names, ", "), " ", attributes.empty() ? "" : "{" + attributes + "} ", ": (",
                  absl::StrJoin(types, ", "), ") -> ", isOne ? "" : "(", absl::StrJoin(madeTypes, ", "),
                  isOne ? "" : ")", "\n");
  ++written;
  return first;
}

size_t RandomText::emitLike(const std::string& op, const std::vector<size_t>& operands, const std::string& attributes) {
  const RandomValue& like = values[operands.back()];
  return emit(op, operands, attributes, Dims(like.shape), like.batch);
}

size_t RandomText::scalar(double value, const std::string& type) {
  --written;
  return emit("fill", {}, absl::StrFormat("value = %.10f : f64", value), {{{}, false, type}});
}

size_t RandomText::binary(const std::string& op, size_t a, size_t b) {
  const Dims& x = values[a].shape;
  const Dims& y = values[b].shape;
  Dims shape(std::max(x.size(), y.size()), 1);
  for (size_t d = 0; d < shape.size(); ++d) {
    shape[shape.size() - 1 - d] = std::max(fromRight(x, d), fromRight(y, d));
  }
  return emit(op, {a, b}, "", shape, values[a].batch || values[b].batch);
}

Dims RandomText::freeShape(size_t v) const {
  Dims shape = values[v].shape;
  if (firstFree(v) == 1) {
    shape[0] = 1;
  }
  return shape;
}

}  // namespace weft::testing
